login-title = Anmelden
login-to-decide = um über die Anfrage von { $consumer } zu entscheiden
login-to-account = bei Ihrem Konto
login-name = Benutzername
login-password = Passwort
login-submit = Anmelden
login-fields-missing = Geben Sie Ihren Benutzernamen und Ihr Passwort ein.
login-wrong = Benutzername oder Passwort ist falsch.
login-throttled = Es gab zu viele Fehlversuche. Versuchen Sie es in { $wait } noch einmal.
login-busy = Im Moment melden sich zu viele Menschen an. Versuchen Sie es in ein paar Sekunden noch einmal.
login-unavailable = Ihr Passwort kann gerade nicht geprüft werden. Versuchen Sie es in ein paar Sekunden noch einmal.

consent-title = Darf { $consumer } in Ihrem Namen handeln?
consent-user = Sie sind angemeldet als { $user }
consent-identity-only = { $consumer } erfährt, wer Sie sind, und kann in Ihrem Namen Aufrufe machen, für die keine besondere Berechtigung nötig ist.
consent-permissions = { $consumer } erfährt, wer Sie sind, und bittet um:
consent-allow = Erlauben
consent-deny = Ablehnen
consent-to-site = In beiden Fällen kehren Sie danach zu { $site } zurück.
consent-to-application = In beiden Fällen kehren Sie danach zur Anwendung zurück.
consent-to-code = Wenn Sie es erlauben, wird Ihnen ein Code angezeigt, den Sie in der Anwendung eingeben.
consent-withdraw = Die Anwendung erfährt Ihr Passwort nie, und Sie können Ihre Erlaubnis jederzeit zurückziehen.
consent-continue = Weiter
consent-not-you = Sind Sie das nicht?
consent-switch = Als jemand anderes anmelden

verifier-title = Sie haben es { $consumer } erlaubt
verifier-type = Geben Sie diesen Code in der Anwendung ein:
verifier-lifetime = Er gilt für { $lifetime } und nur einmal. Geben Sie ihn niemandem sonst. Danach können Sie diese Seite schließen.

denied-title = Sie haben { $consumer } abgelehnt
denied-text = Die Anwendung kann nicht in Ihrem Namen handeln. Sie können diese Seite schließen.

applications-title = Verbundene Anwendungen
applications-link = Anwendungen, die in Ihrem Namen handeln können
applications-text = Diese Anwendungen können in Ihrem Namen handeln. Was Sie hier zurückziehen, endet sofort.
applications-log-out = Abmelden
applications-withdrawn = Die Anwendung kann nicht mehr in Ihrem Namen handeln.
applications-none = Keine Anwendung kann in Ihrem Namen handeln.
applications-none-here = Von diesen kann keine Anwendung in Ihrem Namen handeln.
applications-allowed = Erlaubt am { $date }
applications-used = zuletzt benutzt am { $date }
applications-unused = noch nicht benutzt
applications-withdraw = Zurückziehen
applications-withdraw-label = Die Erlaubnis für { $consumer } zurückziehen
applications-more = Mehr

sessions-title = Wo Sie angemeldet sind
sessions-open = { $count ->
    [one] in { $count } Browser
   *[other] in { $count } Browsern
}
sessions-since = seit { $date }
sessions-end = Überall abmelden

password-title = Passwort ändern
password-rule = Das neue Passwort braucht { $count ->
    [one] mindestens { $count } Zeichen.
   *[other] mindestens { $count } Zeichen.
}
password-text = Alle anderen Browser werden abgemeldet. Anwendungen, die in Ihrem Namen handeln können, können es weiterhin.
password-current = Bisheriges Passwort
password-new = Neues Passwort
password-again = Neues Passwort noch einmal
password-changed = Ihr Passwort ist geändert, und alle anderen Browser sind abgemeldet.
password-fields-missing = Füllen Sie alle drei Felder aus.
password-differs = Die beiden neuen Passwörter sind verschieden.
password-wrong = Das bisherige Passwort ist falsch.
password-short = Das neue Passwort ist zu kurz.
password-long = Das neue Passwort ist zu lang.
password-same = Das neue Passwort ist das bisherige.
password-name = Das neue Passwort darf nicht Ihr Name sein.
password-common = Das neue Passwort ist eines der häufigsten, und diese werden zuerst geraten. Wählen Sie ein anderes.

duration-seconds = { $count ->
    [one] { $count } Sekunde
   *[other] { $count } Sekunden
}
duration-minutes = { $count ->
    [one] { $count } Minute
   *[other] { $count } Minuten
}
duration-hours = { $count ->
    [one] { $count } Stunde
   *[other] { $count } Stunden
}

footer-terms = Nutzungsbedingungen
footer-privacy = Datenschutz

error-again = Noch einmal beginnen
error-request = Anfrage
error-method = So geht es nicht
error-method-text = Diese Seite kann nicht auf diese Weise aufgerufen werden.
error-malformed = Dieser Link ist kaputt
error-malformed-no-request = Er nennt keine Anfrage. Gehen Sie zurück zur Anwendung und beginnen Sie noch einmal.
error-malformed-twice = Er nennt etwas zweimal.
error-malformed-decision = Das Formular, das Ihr Browser gesendet hat, nennt keine Entscheidung.
error-malformed-form = Das Formular, das Ihr Browser gesendet hat, ist nicht lesbar.
error-malformed-user = Der vorgeschaltete Proxy nennt nicht genau einen Benutzer.
error-two-sessions = Zwei Anmeldungen zugleich
error-two-sessions-text = Ihr Browser hat zwei Sitzungs-Cookies für diese Website gesendet, und es ist nicht erkennbar, welches Ihres ist. Löschen Sie die Cookies dieser Website und versuchen Sie es noch einmal.
error-forged = Dieses Formular wurde nicht angenommen
error-forged-text = Es kam nicht von einer Seite dieser Website. Nichts wurde geändert.
error-stale = Dieses Formular ist veraltet
error-stale-text = Sie haben sich inzwischen an- oder abgemeldet, die Seite war zu lange offen, oder es wurde schon beantwortet. Nichts wurde geändert.
error-cookie = Ihr Browser hat kein Cookie gesendet
error-cookie-text = Dieses Formular funktioniert nur mit einem Cookie dieser Website, das nichts als eine Zufallszahl enthält. Erlauben Sie Cookies für diese Website und beginnen Sie noch einmal.
error-unknown = Diese Anfrage ist nicht bekannt
error-unknown-text = Der Link der Anwendung ist nicht gültig. Gehen Sie zurück zur Anwendung und beginnen Sie noch einmal.
error-expired = Diese Anfrage ist abgelaufen
error-expired-text = Es ist zu viel Zeit vergangen. Gehen Sie zurück zur Anwendung und beginnen Sie noch einmal.
error-used = Diese Anfrage wurde schon beantwortet
error-used-text = Jede Anfrage kann nur einmal beantwortet werden. Gehen Sie zurück zur Anwendung und beginnen Sie dort, wenn nötig, noch einmal.
error-disabled = Diese Anwendung ist gesperrt
error-disabled-text = Sie darf zurzeit nicht um Zugriff bitten.
error-callback = Diese Anfrage kann nicht beantwortet werden
error-callback-text = Die Adresse, zu der die Anwendung Sie schicken will, ist nicht für sie registriert.
error-no-application = Keine solche Anwendung
error-no-application-text = Vielleicht wurde die Erlaubnis schon zurückgezogen. Nichts wurde geändert.
error-password = Ihr Passwort wurde inzwischen geändert
error-password-text = Es ist ein anderes, seit Sie das Formular geöffnet haben: durch Sie in einem anderen Browser oder durch den Betreiber. Hier wurde nichts geändert. Melden Sie sich mit dem neuen Passwort an.
error-nobody = Sie sind nicht angemeldet
error-nobody-text = Melden Sie sich dort an, woher Sie gekommen sind, und öffnen Sie dann diese Seite noch einmal.
error-not-admitted = Ihr Konto ist nicht zugelassen
error-not-admitted-text = Es ist hier gesperrt oder widerspricht einem anderen Konto. Fragen Sie die Betreiber dieses Dienstes.
error-unavailable = Bitte versuchen Sie es noch einmal
error-unavailable-text = Der Dienst kann gerade nicht antworten. Versuchen Sie es in ein paar Sekunden noch einmal.
error-fault = Etwas ist schiefgegangen
error-fault-text = Der Fehler liegt auf unserer Seite.
error-login = Anmelden
error-login-text = Sie müssen sich anmelden, um diese Seite zu sehen.
error-unproved = Nicht erlaubt
error-unproved-text = Die Anfrage beweist nicht, in wessen Namen sie gestellt wird.
error-forbidden = Nicht erlaubt
error-forbidden-text = Sie dürfen das nicht, oder Sie kommen von einer anderen Website. Öffnen Sie die Seite von dieser Website aus.
error-not-found = Nicht gefunden
error-not-found-text = Unter dieser Adresse gibt es nichts. Prüfen Sie, ob sie richtig geschrieben ist.
error-slow = Zu langsam
error-slow-text = Die Anfrage hat zu lange gedauert. Versuchen Sie es noch einmal.
error-large = Zu groß
error-large-text = Die Anfrage ist zu groß.
error-misdirected = Falsche Adresse
error-misdirected-text = Dieser Dienst ist nicht unter dieser Adresse zu finden.
error-rate = Zu viele Anfragen
error-rate-text = Warten Sie einen Moment und versuchen Sie es noch einmal.
error-upstream = Nicht verfügbar
error-upstream-text = Der Dienst hinter dieser Adresse antwortet nicht. Versuchen Sie es in ein paar Minuten noch einmal.
error-request-broken = Fehlerhafte Anfrage
error-request-broken-text = Die Anfrage ist fehlerhaft.
