# Every page in English. The other languages have the same messages with the same variables.
# A value is shown in place of its variable; it is escaped and set apart from the text around it.

login-title = Log in
login-to-decide = Log in to answer the request of { $consumer }.
login-to-account = Log in to your account.
login-name = User name
login-password = Password
login-submit = Log in
login-fields-missing = Enter your user name and your password.
login-wrong = User name or password is wrong.
# $wait is one of the duration messages.
login-throttled = There were too many failed attempts. Try again in { $wait }.
login-busy = Too many people are logging in at the moment. Try again in a few seconds.
login-unavailable = The service cannot check your password just now. Try again in a few seconds.

consent-title = Allow { $consumer } to act for you?
consent-user = You are logged in as { $user }
consent-identity-only = { $consumer } learns who you are and can make calls in your name that need no particular permission.
consent-permissions = { $consumer } learns who you are and will be able to:
consent-allow = Allow
consent-deny = Deny
# $site is a host name, sometimes with a port.
consent-to-site = Either way you then go back to { $site }.
consent-to-application = Either way you then go back to the application.
consent-to-code = If you allow it, you are shown a code to type into the application.
consent-withdraw = The application never sees your password, and you can withdraw your permission at any time.
# The link to the application, where a redirect is not followed.
consent-continue = Continue
consent-not-you = Not you?
consent-switch = Log in as somebody else

verifier-title = You have allowed { $consumer }
verifier-type = Type this code into the application:
# $lifetime is one of the duration messages.
verifier-lifetime = It works once, within { $lifetime }. Do not give it to anyone else. When the application has taken it, you can close this page.

denied-title = You have denied { $consumer }
denied-text = It cannot act for you. You can close this page.

# The heading of the page, and the links to it.
applications-title = Connected applications
applications-link = Applications that can act for you
applications-text = These applications can act for you. What you withdraw here ends at once.
applications-log-out = Log out
applications-withdrawn = { $consumer } can no longer act for you.
applications-none = No application can act for you.
applications-none-here = None of these can act for you any more.
# $date is like 2026-01-31.
applications-allowed = Allowed on { $date }
applications-used = last used on { $date }
applications-unused = not used yet
applications-withdraw = Withdraw
applications-withdraw-label = Withdraw the permission of { $consumer }
applications-more = More
# How often the user has allowed an application.
applications-connections = { $count ->
    [one] { $count } connection
   *[other] { $count } connections
}

# Before the access of an application ends.
withdraw-title = Withdraw the permission of { $consumer }?
withdraw-text = It can then no longer act for you, on any of your devices.
withdraw-cancel = Keep the permission

# The open sessions of the user, below the applications: a heading, then how many and since when the oldest.
sessions-title = Where you are logged in
sessions-open = { $count ->
    [one] in { $count } browser
   *[other] in { $count } browsers
}
# $date is like 2026-01-31.
sessions-since = since { $date }
sessions-end = Log out everywhere

password-title = Change your password
password-rule = The new password has to have { $count ->
    [one] at least { $count } character.
   *[other] at least { $count } characters.
}
password-text = All your other browsers will be logged out. Applications that can act for you still can.
password-current = Current password
password-new = New password
password-again = New password once more
password-changed = Your password is changed, and all your other browsers are logged out.
password-fields-missing = Fill in all three fields.
password-differs = The two new passwords differ.
password-wrong = The current password is wrong.
password-short = The new password is too short.
password-long = The new password is too long.
password-same = The new password is the current one.
password-name = The new password must not be your name.
password-common = The new password is one of the most common ones, which are guessed first. Choose another one.

duration-seconds = { $count ->
    [one] { $count } second
   *[other] { $count } seconds
}
duration-minutes = { $count ->
    [one] { $count } minute
   *[other] { $count } minutes
}
duration-hours = { $count ->
    [one] { $count } hour
   *[other] { $count } hours
}

# The links below every page, where pages.terms_url and pages.privacy_url are set.
footer-terms = Terms of use
footer-privacy = Privacy

# Error pages: a heading, and what happened and what to do.
error-again = Start again
# Before the number by which the operator finds the request in the log.
error-request = Request
error-method = This page cannot be opened like this
error-method-text = Use the button or the link on this site.
error-malformed = This link is broken
error-malformed-no-request = The link is incomplete. Go back to the application and start again.
error-malformed-twice = It names something twice.
error-malformed-decision = The form that your browser sent names no decision.
error-malformed-form = The form that your browser sent cannot be read.
error-malformed-user = The proxy in front does not name one user.
error-two-sessions = Two logins at once
error-two-sessions-text = Your browser sent two session cookies for this site, and it cannot be told which is yours. Delete the cookies of this site and try again.
error-forged = This form was not accepted
error-forged-text = It did not come from this site's own page. Nothing was changed.
error-stale = This form is out of date
error-stale-text = You have logged in or out meanwhile, or the page was open for too long. Nothing was changed.
error-cookie = Your browser sent no cookie
error-cookie-text = This form works only with a cookie of this site, which holds nothing but a random number. Allow cookies for this site, and start again.
error-unknown = This request is not known
error-unknown-text = The application's link is not valid. Go back to the application and start again.
error-expired = This request has expired
error-expired-text = Too much time has gone by. Go back to the application and start again.
error-used = This request was answered already
error-used-text = Each request can be answered once. Go back to the application, and start again there if needed.
error-disabled = This application is disabled
error-disabled-text = It may not ask for access at present.
error-callback = This request cannot be answered
error-callback-text = The address to which the application wants you sent is not registered for it.
error-no-application = No such application
error-no-application-text = It may have been withdrawn already. Nothing was changed.
error-password = Your password has changed meanwhile
error-password-text = Somebody has set another one since you opened the form: you in another browser, or the operator. Nothing was changed here. Log in with the new password.
error-nobody = You are not logged in
error-nobody-text = Log in on the site you came from, then open this page again.
error-not-admitted = Your account is not admitted
error-not-admitted-text = It is disabled here, or in conflict with another one. Ask whoever runs this service.
error-unavailable = Please try again
error-unavailable-text = The service cannot respond just now. Try again in a few seconds.
error-fault = Something went wrong
error-fault-text = The fault is on this side.
error-login = Log in
error-login-text = You have to log in to see this page.
error-unproved = This address is for applications
error-unproved-text = They call it with a signed request.
error-forbidden = Not allowed
error-forbidden-text = You may not do this, or you came here from another site. Open the page from this site.
error-not-found = Not found
error-not-found-text = There is nothing at this address. Check that it is spelled correctly.
error-slow = Too slow
error-slow-text = The request took too long. Try again.
error-large = Too large
error-large-text = The request is too large.
error-misdirected = Wrong address
error-misdirected-text = This service is not at this address.
error-rate = Too many requests
error-rate-text = Wait a moment and try again.
error-upstream = Not available
error-upstream-text = The service does not respond. Try again in a few minutes.
error-request-broken = Bad request
error-request-broken-text = The request is broken.
