language-name = Deutsch
title-error = Fehler:
date-words = { $day }. { $month ->
    [1] Januar
    [2] Februar
    [3] März
    [4] April
    [5] Mai
    [6] Juni
    [7] Juli
    [8] August
    [9] September
    [10] Oktober
    [11] November
   *[12] Dezember
} { $year }

login-title = Bei { $service } anmelden
login-to-decide = Melden Sie sich an, um zu { $consumer } zu gelangen.
login-name = Benutzername
login-password = Passwort
login-submit = Anmelden
login-recovery = Passwort vergessen?
login-fields-missing = Geben Sie Ihren Benutzernamen und Ihr Passwort ein.
login-wrong = Benutzername oder Passwort ist falsch.
login-throttled = Es gab zu viele Fehlversuche. Versuchen Sie es in { $wait } noch einmal.
login-busy = Im Moment melden sich zu viele Menschen an. Versuchen Sie es in ein paar Sekunden noch einmal.
login-unavailable = Ihr Passwort kann gerade nicht geprüft werden. Versuchen Sie es in ein paar Sekunden noch einmal.

consent-title = { $consumer } bittet um Zugriff auf Ihr Konto bei { $service }
consent-user = Angemeldet als { $user }
consent-not-you = Nicht Ihr Konto?
consent-switch = Mit einem anderen Konto anmelden
consent-earlier = Sie haben es am { $date } schon erlaubt.
consent-more = { $count ->
    [one] Jetzt fragt sie nach { $count } weiteren Sache, als „neu“ gekennzeichnet.
   *[other] Jetzt fragt sie nach { $count } weiteren Sachen, als „neu“ gekennzeichnet.
}
consent-nothing-new = Die Anwendung bittet um nichts Neues.
consent-permissions = Wenn Sie es erlauben, kann die Anwendung
consent-identity = Erfahren, wer Sie sind
consent-identity-name = Ihr Benutzername und Ihre Kennung
consent-identity-full = Ihr Name, Ihr Benutzername und Ihre Kennung
consent-calls = In Ihrem Namen handeln, soweit dafür keine besondere Berechtigung nötig ist
consent-new = neu
consent-sensitive = heikel
consent-sum = { $count } Berechtigungen, { $sensitive } davon heikel
consent-sensitive-count = { $count ->
    [one] { $count } davon ist heikel.
   *[other] { $count } davon sind heikel.
}
consent-developer = Name und Beschreibung stammen vom Entwickler und sind von { $service } nicht geprüft.
consent-developer-name = Der Name stammt vom Entwickler und ist von { $service } nicht geprüft.
consent-since = registriert am { $date }
consent-to-site = Wie auch immer Sie sich entscheiden: Sie kehren zu { $site } zurück.
consent-to-scheme = Wie auch immer Sie sich entscheiden: Danach öffnet sich eine App auf diesem Gerät, die Links mit { $scheme } öffnet.
consent-to-code = Wenn Sie es erlauben, erhalten Sie einen Code, den Sie in der Anwendung eingeben.
consent-allow = Erlauben
consent-deny = Ablehnen
consent-password = Die Anwendung erfährt Ihr Passwort nie.
consent-holds = Der Zugriff gilt, bis Sie ihn unter { $page } widerrufen.
consent-holds-for = Der Zugriff gilt { $duration } lang, oder bis Sie ihn unter { $page } widerrufen.
consent-ends-unused = Wird er { $duration } lang nicht genutzt, endet er früher.
consent-remembered = Bis dahin werden Sie nach demselben Zugriff nicht noch einmal gefragt.
consent-continue = Weiter
consent-continue-to = Weiter zu { $site }

verifier-title = Sie haben { $consumer } den Zugriff erlaubt
verifier-type = Geben Sie diesen Code in der Anwendung ein:
verifier-lifetime = Er gilt für { $lifetime } und nur einmal. Geben Sie ihn nicht weiter. Schließen Sie diese Seite, sobald die Anwendung ihn annimmt.
verifier-taken = { $consumer } hat den Code angenommen
verifier-taken-text = Sie können diese Seite schließen.

denied-title = Sie haben { $consumer } den Zugriff verweigert
denied-text = Die Anwendung kann nicht in Ihrem Namen handeln. Sie können diese Seite schließen.
denied-still = { $consumer } kann mit dem früher erteilten Zugriff weiterhin in Ihrem Namen handeln.

applications-title = Verbundene Anwendungen
applications-text = Diese Anwendungen können in Ihrem Namen handeln. Was Sie hier widerrufen, endet sofort.
applications-log-out = Abmelden
applications-withdrawn = { $consumer } kann nicht mehr in Ihrem Namen handeln.
applications-none = Sie haben keine Anwendungen verbunden.
applications-none-here = Von diesen kann keine Anwendung in Ihrem Namen handeln.
applications-permissions = { $count ->
    [one] { $count } Berechtigung
   *[other] { $count } Berechtigungen
}
applications-allowed = Erlaubt am { $date }
applications-given = Vom Betreiber erlaubt am { $date }
applications-own = Ihr eigenes Zugriffstoken, erzeugt am { $date }
applications-used = zuletzt benutzt am { $date }
applications-unused = nicht benutzt, oder erst gerade eben
applications-withdraw = Zugriff entziehen
applications-more = Mehr
applications-connections = { $count ->
    [one] { $count } Verbindung
   *[other] { $count } Verbindungen
}

withdraw-title = Den Zugriff von { $consumer } widerrufen?
withdraw-text = Die Anwendung kann dann auf keinem Gerät mehr in Ihrem Namen handeln.
withdraw-cancel = Zugriff behalten

sessions-title = Wo Sie angemeldet sind
sessions-browser = { $browser } unter { $system }
sessions-unknown = Unbekannter Browser
sessions-this = Dieser Browser
sessions-since = seit { $date }, angemeldet von { $address }
sessions-open = { $count ->
    [one] { $count } Browser
   *[other] { $count } Browser
}
sessions-all = Alle { $count } Browser
sessions-others = Überall sonst abmelden
sessions-end = Überall abmelden

logout-title = Von { $service } abmelden?
logout-text = In diesem Browser müssen Sie sich dann neu anmelden.
logout-others-title = Überall sonst abmelden?
logout-others-text = Hier bleiben Sie angemeldet. In allen anderen Browsern müssen Sie sich neu anmelden.
logout-all-title = Überall abmelden?
logout-all-text = In allen Browsern, auch in diesem, müssen Sie sich neu anmelden.
logout-applications = Verbundene Anwendungen behalten ihren Zugriff.
logout-cancel = Angemeldet bleiben

notice-out = Sie sind abgemeldet.
notice-out-all = Sie sind überall abgemeldet.
notice-out-others = Sie sind überall sonst abgemeldet.
notice-out-one = Dieser Browser ist abgemeldet.

password-title = Passwort ändern
password-rule = { $count ->
    [one] Verwenden Sie mindestens { $count } Zeichen.
   *[other] Verwenden Sie mindestens { $count } Zeichen.
}
password-text = Alle Ihre anderen Browser werden abgemeldet. Anwendungen, die in Ihrem Namen handeln können, behalten ihren Zugriff.
password-must-change = Der Betreiber hat Ihr Passwort festgelegt. Wählen Sie ein anderes, das nur Sie kennen, um fortzufahren.
password-current = Bisheriges Passwort
password-new = Neues Passwort
password-again = Neues Passwort wiederholen
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
duration-days = { $count ->
    [one] { $count } Tag
   *[other] { $count } Tage
}

footer-terms = Nutzungsbedingungen
footer-privacy = Datenschutz
footer-help = Hilfe
footer-language = Sprache

refusal-consumer = Die Anwendung ist { $consumer }.
refusal-back = Zurück zu { $site }
refusal-developers = Für Entwickler
refusal-docs = Mehr über diesen Fehler

launch-title = Die Aktivität wurde nicht geöffnet
launch-text = Öffnen Sie sie noch einmal aus Ihrem Kurs.
launch-busy = Warten Sie einen Moment, und öffnen Sie sie dann noch einmal aus Ihrem Kurs.
launch-reference = Wenn das nicht hilft, nennen Sie Ihrer Lehrkraft diese Vorgangsnummer:
launch-administrator = Für Administratoren
launch-message = { launch-title }. { launch-text } { launch-reference } { $reference }

developer-title = Abgelehnte Aufrufe von { $consumer }
developer-text = Für die Entwickler dieser Anwendung: welche ihrer Aufrufe { $service } abgelehnt hat und warum. Hier ist kein Geheimnis zu sehen.
developer-until = Diese Seite endet am { $time }. Wer ihre Adresse hat, kann sie lesen: Geben Sie sie nicht weiter.
developer-process = Sie zeigt, was ein Prozess des Dienstes seit { $time } gesehen hat. Gibt es mehrere, hat ein anderer vielleicht mehr gesehen: Laden Sie die Seite noch einmal.
developer-why = Warum Aufrufe abgelehnt wurden
developer-none = Kein Aufruf wurde abgelehnt.
developer-calls-count = { $count ->
    [one] { $count } Aufruf
   *[other] { $count } Aufrufe
}
developer-proof-verified = Die Signatur stimmt.
developer-proof-secrets = Die Signatur ist falsch und wurde mit Ihren Geheimnissen erzeugt.
developer-proof-none = Nicht bewiesen: Jeder kann Ihren Schlüssel senden.
developer-previous = Der letzte ist mit Ihrem vorigen Geheimnis signiert, das bald endet.
developer-previous-until = Sie ist mit Ihrem vorigen Geheimnis signiert, das am { $time } endet.
developer-observed = Diese Aufrufe gingen durch. Sie werden abgelehnt, sobald Signaturen erzwungen werden.
developer-base-strings = Basistexte des letzten
developer-hidden = Buchstaben und Ziffern von Werten und Pfaden sind als x gezeigt. Unterschiede sind markiert.
developer-right = Richtiger Basistext
developer-signed = Signierter Basistext
developer-last = Letzte Aufrufe
developer-check = Eine Anfrage prüfen
developer-check-text = Fügen Sie eine Anfrage ein, wie sie übertragen wurde, oder einen curl-Befehl, oder den Basistext, den Ihre Bibliothek signiert hat, oder beides. Die Anfrage wird weder weitergeleitet noch aufbewahrt, und kein Geheimnis wird gezeigt.
developer-request = Anfrage
developer-base-string = Basistext, den Ihre Bibliothek signiert hat
developer-submit = Prüfen
developer-check-right = Die Signatur stimmt. Nicht geprüft ist hier, ob die Nonce schon verwendet wurde und ob der Aufruf erlaubt ist.
developer-check-wrong = Diese Anfrage wird abgelehnt.
developer-check-unknown = Die Signatur ist falsch, und kein bekannter Fehler ergibt sie: Vergleichen Sie das Geheimnis der Anwendung, das des Tokens und die Basistexte.
developer-check-well-formed = Der Basistext ist wohlgeformt. Ob er der Ihrer Anfrage ist, zeigt nur die Anfrage.
developer-check-differs = Der Basistext ist nicht wohlgeformt. Unterschiede sind markiert.
developer-check-nothing = Fügen Sie eine Anfrage oder einen Basistext ein.
developer-check-unreadable = Das kann nicht gelesen werden.
developer-check-other = Diese Anfrage nennt eine andere Anwendung.
developer-check-busy = Im Moment werden zu viele Anfragen geprüft. Versuchen Sie es in ein paar Sekunden noch einmal.

collections-text = Anfragen zum Ausprobieren, für Bruno und Postman. Die Datei enthält kein Geheimnis: Tragen Sie Ihres in ihre Variablen ein.

register-title = Ihre Anwendungsschlüssel
register-text = Mit einem eigenen Schlüssel kann eine Anwendung, die Sie schreiben, { $service } aufrufen.
register-none = Sie haben keinen Schlüssel.
register-manage = Verwalten
register-new = Ein neuer Schlüssel
register-name = Name der Anwendung
register-description = Wofür sie da ist
register-website = Website (freiwillig)
register-contact = Kontakt: eine E-Mail-Adresse oder eine Webseite
register-callbacks = Callbacks, einer je Zeile; oob für ein Programm ohne Webseite
register-permissions = Berechtigungen, die sie braucht
register-submit = Schlüssel beantragen
register-approval = Ein Betreiber von { $service } entscheidet über jeden Schlüssel. Er gilt, sobald er genehmigt ist.
register-sensitive = Über einen Schlüssel mit einer heiklen Berechtigung entscheidet ein Betreiber von { $service }. Andere gelten sofort.
register-key = Schlüssel
register-secret = Geheimnis
register-made = Der Schlüssel von { $consumer }
register-once = Kopieren Sie das Geheimnis jetzt. Es wird nicht noch einmal gezeigt.
register-waiting = Wartet auf Genehmigung
register-works = Gültig
register-declined = Abgelehnt
register-disabled = Gesperrt
register-said = Der Betreiber schrieb: { $text }
register-asked = Diese Callbacks warten auf Genehmigung:
register-rotate = Neues Geheimnis erzeugen
register-grace = Das alte Geheimnis gilt noch 24 Stunden
register-change = Callbacks ändern
register-rejections = Abgelehnte Aufrufe ansehen
register-end = Schlüssel beenden
register-keep = Schlüssel behalten
register-end-title = Den Schlüssel von { $consumer } beenden?
register-end-text = Aller Zugriff der Anwendung endet sofort, für alle Benutzer. Der Schlüssel kommt nicht zurück.
register-token = Ein Zugriffstoken für sich selbst erzeugen
register-token-title = Ihr Zugriffstoken von { $consumer }
register-token-text = Damit handelt die Anwendung in Ihrem Namen, als hätten Sie es ihr erlaubt. Ein neues beendet das vorige; auch unter „Verbundene Anwendungen“ können Sie es beenden.
register-token-permits = Damit kann sie
register-token-name = Zugriffstoken
register-invalid = Berichtigen Sie das und senden Sie es noch einmal:
register-taken = Eine andere Anwendung hat diesen Namen. Wählen Sie einen anderen.
register-too-many = Es gibt im Moment zu viele Schlüssel. Beenden Sie einen, den Sie nicht brauchen, oder versuchen Sie es morgen wieder.
register-ended = Hier werden keine Schlüssel mehr vergeben.

error-again = Von vorn beginnen
error-try-again = Noch einmal versuchen
error-request = Vorgangsnummer
error-method = Diese Seite lässt sich so nicht öffnen
error-method-text = Benutzen Sie die Schaltfläche oder den Link auf dieser Website.
error-malformed = Dieser Link ist ungültig
error-malformed-no-request = Der Link ist unvollständig. Gehen Sie zurück zur Anwendung und beginnen Sie von vorn.
error-malformed-twice = Eine Angabe steht doppelt im Link.
error-malformed-permission = Er nennt eine Berechtigung, um die die Anwendung nicht bitten darf.
error-malformed-decision = Das Formular, das Ihr Browser gesendet hat, nennt keine Entscheidung.
error-malformed-form = Das Formular, das Ihr Browser gesendet hat, ist nicht lesbar.
error-malformed-user = Der vorgeschaltete Proxy nennt nicht genau einen Benutzer.
error-two-sessions = Zwei Anmeldungen zugleich
error-two-sessions-text = Ihr Browser hat zwei Sitzungs-Cookies für diese Website gesendet, und es ist nicht erkennbar, welches Ihres ist. Löschen Sie die Cookies dieser Website und versuchen Sie es noch einmal.
error-forged = Dieses Formular wurde nicht angenommen
error-forged-text = Es kam nicht von einer Seite dieser Website. Nichts wurde geändert.
error-stale = Dieses Formular ist veraltet
error-stale-in = Sie haben sich neu angemeldet, seit dieses Formular angezeigt wurde. Nichts wurde geändert.
error-stale-out = Sie wurden abgemeldet, seit dieses Formular angezeigt wurde. Nichts wurde geändert.
error-stale-old = Die Seite war zu lange offen. Nichts wurde geändert.
error-cookie = Ihr Browser hat kein Cookie gesendet
error-cookie-text = Dieses Formular funktioniert nur mit einem Cookie dieser Website, das nichts als eine Zufallszahl enthält. Erlauben Sie Cookies für diese Website und beginnen Sie noch einmal.
error-unknown = Dieser Link ist uns nicht bekannt
error-unknown-text = Der Link der Anwendung ist nicht gültig. Gehen Sie zurück zur Anwendung und beginnen Sie noch einmal.
error-expired = Diese Anfrage ist abgelaufen
error-expired-text = Es ist zu viel Zeit vergangen. Gehen Sie zurück zur Anwendung und beginnen Sie noch einmal.
error-used = Diese Anfrage wurde schon beantwortet
error-used-text = Jede Anfrage kann nur einmal beantwortet werden. Gehen Sie zurück zur Anwendung und beginnen Sie dort, wenn nötig, noch einmal.
error-disabled = Diese Anwendung ist gesperrt
error-disabled-text = Die Anwendung kann gerade keinen Zugriff anfragen.
error-ended = Auf diese Weise kann kein Zugriff mehr erlaubt werden
error-ended-text = Diese Anwendung muss geändert werden, bevor sie wieder Zugriff anfragen kann. Zugriff, den Sie früher erlaubt haben, bleibt. Fragen Sie den Entwickler der Anwendung.
error-callback = Diese Anfrage kann nicht beantwortet werden
error-callback-text = Die Adresse, zu der die Anwendung Sie schicken will, ist nicht für sie registriert.
error-no-application = Keine solche Anwendung
error-no-application-text = Vielleicht wurde der Zugriff schon entzogen. Nichts wurde geändert.
error-link = Dieser Link funktioniert nicht
error-link-text = Er ist beendet oder war nie gültig. Bitten Sie den Betreiber des Dienstes um einen neuen.
error-password = Ihr Passwort wurde inzwischen geändert
error-password-text = Es wurde geändert, seit Sie das Formular geöffnet haben – von Ihnen in einem anderen Browser oder vom Betreiber. Hier wurde nichts geändert. Melden Sie sich mit dem neuen Passwort an.
error-nobody = Sie sind nicht angemeldet
error-nobody-text = Melden Sie sich auf der Seite an, von der Sie kommen, und öffnen Sie dann diese Seite noch einmal.
error-not-admitted = Mit Ihrem Konto können Sie sich hier nicht anmelden
error-not-admitted-text = Es ist hier gesperrt oder steht in Konflikt mit einem anderen Konto. Fragen Sie die Betreiber dieses Dienstes.
error-unavailable = Bitte versuchen Sie es noch einmal
error-unavailable-text = Der Dienst kann gerade nicht antworten. Versuchen Sie es in ein paar Sekunden noch einmal.
error-wait = Versuchen Sie es in { $wait } noch einmal.
error-fault = Etwas ist schiefgegangen
error-fault-text = Der Fehler liegt auf unserer Seite.
error-login = Anmelden
error-login-text = Sie müssen sich anmelden, um diese Seite zu sehen.
error-unproved = Diese Adresse ist für Anwendungen
error-unproved-text = Programme rufen sie mit einer signierten Anfrage auf. Haben Sie Ihre verbundenen Anwendungen gesucht?
error-signature = Die Signatur ist falsch
error-signature-text = Ein Programm hat eine signierte Anfrage gesendet. Der Entwickler findet hier den Grund.
error-forbidden = Nicht erlaubt
error-forbidden-text = Sie dürfen das nicht, oder Sie kommen von einer anderen Website. Öffnen Sie die Seite von dieser Website aus.
error-not-found = Nicht gefunden
error-not-found-text = Unter dieser Adresse gibt es nichts. Prüfen Sie, ob sie richtig geschrieben ist.
error-slow = Zeitüberschreitung
error-slow-text = Die Anfrage hat zu lange gedauert. Versuchen Sie es noch einmal.
error-large = Anfrage zu groß
error-large-text = Senden Sie weniger auf einmal.
error-misdirected = Falsche Adresse
error-misdirected-text = Dieser Dienst hat eine andere Adresse.
error-rate = Zu viele Anfragen
error-rate-text = Warten Sie einen Moment und versuchen Sie es noch einmal.
error-upstream = Nicht verfügbar
error-upstream-text = Der Dienst antwortet nicht. Versuchen Sie es in ein paar Minuten noch einmal.
error-request-broken = Fehlerhafte Anfrage
error-request-broken-text = Was gesendet wurde, ist nicht lesbar. Öffnen Sie die Seite neu.
