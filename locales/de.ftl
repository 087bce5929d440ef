login-title = Anmelden
login-to-decide = Melden Sie sich an, um die Anfrage von { $consumer } zu beantworten.
login-to-account = Melden Sie sich bei Ihrem Konto an.
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
consent-identity-only = { $consumer } erfährt, wer Sie sind, und kann in Ihrem Namen Anfragen stellen, für die keine besondere Berechtigung nötig ist.
consent-permissions = { $consumer } erfährt, wer Sie sind, und möchte:
consent-allow = Erlauben
consent-deny = Ablehnen
consent-to-site = In beiden Fällen kehren Sie danach zu { $site } zurück.
consent-to-application = In beiden Fällen kehren Sie danach zur Anwendung zurück.
consent-to-code = Wenn Sie es erlauben, wird Ihnen ein Code angezeigt, den Sie in der Anwendung eingeben.
consent-withdraw = Die Anwendung erfährt Ihr Passwort nie, und Sie können Ihre Erlaubnis jederzeit widerrufen.
consent-continue = Weiter
consent-not-you = Nicht Ihr Konto?
consent-switch = Mit einem anderen Konto anmelden

verifier-title = Sie haben { $consumer } den Zugriff erlaubt
verifier-type = Geben Sie diesen Code in der Anwendung ein:
verifier-lifetime = Er gilt für { $lifetime } und nur einmal. Geben Sie ihn nicht weiter. Danach können Sie diese Seite schließen.

denied-title = Sie haben { $consumer } den Zugriff verweigert
denied-text = Die Anwendung kann nicht in Ihrem Namen handeln. Sie können diese Seite schließen.

applications-title = Verbundene Anwendungen
applications-link = Anwendungen, die in Ihrem Namen handeln können
applications-text = Diese Anwendungen können in Ihrem Namen handeln. Was Sie hier widerrufen, endet sofort.
applications-log-out = Abmelden
applications-withdrawn = { $consumer } kann nicht mehr in Ihrem Namen handeln.
applications-none = Keine Anwendung kann in Ihrem Namen handeln.
applications-none-here = Von diesen kann keine Anwendung in Ihrem Namen handeln.
applications-allowed = Erlaubt am { $date }
applications-used = zuletzt benutzt am { $date }
applications-unused = noch nicht benutzt
applications-withdraw = Zugriff entziehen
applications-withdraw-label = { $consumer } den Zugriff entziehen
applications-more = Mehr
applications-connections = { $count ->
    [one] { $count } Verbindung
   *[other] { $count } Verbindungen
}

withdraw-title = Den Zugriff von { $consumer } widerrufen?
withdraw-text = Die Anwendung kann dann auf keinem Gerät mehr in Ihrem Namen handeln.
withdraw-cancel = Zugriff behalten

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
password-text = Alle Ihre anderen Browser werden abgemeldet. Anwendungen, die in Ihrem Namen handeln können, behalten ihren Zugriff.
password-current = Bisheriges Passwort
password-new = Neues Passwort
password-again = Neues Passwort noch einmal
password-changed = Ihr Passwort ist geändert, und alle anderen Browser sind abgemeldet.
password-fields-missing = Füllen Sie alle drei Felder aus.
password-differs = Die beiden neuen Passwörter sind verschieden.
password-wrong = Das bisherige Passwort ist falsch.
password-short = Das neue Passwort ist zu kurz.
password-long = Das neue Passwort ist zu lang.
password-same = Das neue Passwort ist dasselbe wie das bisherige.
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

error-again = Von vorn beginnen
error-request = Anfrage
error-method = Diese Seite lässt sich so nicht öffnen
error-method-text = Benutzen Sie die Schaltfläche oder den Link auf dieser Website.
error-malformed = Dieser Link ist ungültig
error-malformed-no-request = Der Link ist unvollständig. Gehen Sie zurück zur Anwendung und beginnen Sie von vorn.
error-malformed-twice = Eine Angabe steht doppelt im Link.
error-malformed-decision = Das Formular, das Ihr Browser gesendet hat, nennt keine Entscheidung.
error-malformed-form = Das Formular, das Ihr Browser gesendet hat, ist nicht lesbar.
error-malformed-user = Der vorgeschaltete Proxy nennt nicht genau einen Benutzer.
error-two-sessions = Zwei Anmeldungen zugleich
error-two-sessions-text = Ihr Browser hat zwei Sitzungs-Cookies für diese Website gesendet, und es ist nicht erkennbar, welches Ihres ist. Löschen Sie die Cookies dieser Website und versuchen Sie es noch einmal.
error-forged = Dieses Formular wurde nicht angenommen
error-forged-text = Es kam nicht von einer Seite dieser Website. Nichts wurde geändert.
error-stale = Dieses Formular ist veraltet
error-stale-text = Sie haben sich inzwischen an- oder abgemeldet, oder die Seite war zu lange offen. Nichts wurde geändert.
error-cookie = Ihr Browser hat kein Cookie gesendet
error-cookie-text = Dieses Formular funktioniert nur mit einem Cookie dieser Website, das nichts als eine Zufallszahl enthält. Erlauben Sie Cookies für diese Website und beginnen Sie noch einmal.
error-unknown = Diese Anfrage ist nicht bekannt
error-unknown-text = Der Link der Anwendung ist nicht gültig. Gehen Sie zurück zur Anwendung und beginnen Sie noch einmal.
error-expired = Diese Anfrage ist abgelaufen
error-expired-text = Es ist zu viel Zeit vergangen. Gehen Sie zurück zur Anwendung und beginnen Sie noch einmal.
error-used = Diese Anfrage wurde schon beantwortet
error-used-text = Jede Anfrage kann nur einmal beantwortet werden. Gehen Sie zurück zur Anwendung und beginnen Sie dort, wenn nötig, noch einmal.
error-disabled = Diese Anwendung ist gesperrt
error-disabled-text = Die Anwendung darf zurzeit keinen Zugriff anfragen.
error-callback = Diese Anfrage kann nicht beantwortet werden
error-callback-text = Die Adresse, zu der die Anwendung Sie schicken will, ist nicht für sie registriert.
error-no-application = Keine solche Anwendung
error-no-application-text = Vielleicht wurde die Erlaubnis schon widerrufen. Nichts wurde geändert.
error-password = Ihr Passwort wurde inzwischen geändert
error-password-text = Es wurde geändert, seit Sie das Formular geöffnet haben – von Ihnen in einem anderen Browser oder vom Betreiber. Hier wurde nichts geändert. Melden Sie sich mit dem neuen Passwort an.
error-nobody = Sie sind nicht angemeldet
error-nobody-text = Melden Sie sich auf der Seite an, von der Sie kommen, und öffnen Sie dann diese Seite noch einmal.
error-not-admitted = Ihr Konto ist nicht zugelassen
error-not-admitted-text = Es ist hier gesperrt oder steht in Konflikt mit einem anderen Konto. Fragen Sie die Betreiber dieses Dienstes.
error-unavailable = Bitte versuchen Sie es noch einmal
error-unavailable-text = Der Dienst kann gerade nicht antworten. Versuchen Sie es in ein paar Sekunden noch einmal.
error-fault = Etwas ist schiefgegangen
error-fault-text = Der Fehler liegt auf unserer Seite.
error-login = Anmelden
error-login-text = Sie müssen sich anmelden, um diese Seite zu sehen.
error-unproved = Diese Adresse ist für Anwendungen
error-unproved-text = Aus der Anfrage geht nicht hervor, wer sie stellt.
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
error-upstream-text = Der Dienst antwortet nicht. Versuchen Sie es in ein paar Minuten noch einmal.
error-request-broken = Fehlerhafte Anfrage
error-request-broken-text = Die Anfrage ist fehlerhaft.
