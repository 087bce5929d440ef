# Every page in English. The other languages have the same messages with the same variables, and GLOSSARY.md the words of
# the field. A value is shown instead of its variable; it is escaped and set apart from the text around it.

# The name of the language in itself, for the links to the languages.
language-name = English
# Before the title of a page that reports an error.
title-error = Error:
# $day, $month and $year are numbers.
date-words = { $day } { $month ->
    [1] January
    [2] February
    [3] March
    [4] April
    [5] May
    [6] June
    [7] July
    [8] August
    [9] September
    [10] October
    [11] November
   *[12] December
} { $year }

login-title = Log in to { $service }
login-to-decide = Log in to continue to { $consumer }.
login-name = User name
login-password = Password
login-submit = Log in
login-recovery = Forgot your password?
login-fields-missing = Enter your user name and your password.
login-wrong = User name or password is wrong.
# $wait is one of the duration messages.
login-throttled = There were too many failed attempts. Try again in { $wait }.
login-busy = Too many people are logging in at the moment. Try again in a few seconds.
login-unavailable = The service cannot check your password just now. Try again in a few seconds.

consent-title = { $consumer } asks for access to your { $service } account
consent-user = Logged in as { $user }
consent-not-you = Not you?
consent-switch = Log in as somebody else
# Where the user has allowed the application before; $date is a date in words.
consent-earlier = You already allowed it on { $date }.
# After that, where it asks for something new; “new” is the message consent-new.
consent-more = { $count ->
    [one] It now asks for { $count } more thing, marked “new”.
   *[other] It now asks for { $count } more things, marked “new”.
}
consent-nothing-new = It asks for nothing new.
# The heading of a list: who the user is, then the permissions.
consent-permissions = If you allow it, it will be able to
consent-identity = See who you are
consent-identity-name = your user name and id
consent-identity-full = your name, user name and id
consent-calls = Do things in your name that need no special permission
consent-new = new
consent-sensitive = sensitive
# After the heading consent-permissions, where some are sensitive.
consent-sum = { $count } permissions, { $sensitive } sensitive
consent-sensitive-count = { $count ->
    [one] { $count } of these is sensitive.
   *[other] { $count } of these are sensitive.
}
consent-developer = Name and description come from its developer and are not checked by { $service }.
consent-developer-name = Its name comes from its developer and is not checked by { $service }.
consent-since = registered on { $date }
# $site is a host name, sometimes with a port.
consent-to-site = Whatever you choose, you return to { $site }.
# $scheme is the beginning of an address, such as com.pocket.album:
consent-to-scheme = Whatever you choose, an app on this device that opens { $scheme } links is next.
consent-to-code = If you allow it, you get a code to type into the application.
consent-allow = Allow
consent-deny = Deny
consent-password = The application never sees your password.
# $page is the link to the page of applications.
consent-holds = Access lasts until you remove it in { $page }.
# $duration is one of the duration messages.
consent-holds-for = Access lasts { $duration }, or until you remove it in { $page }.
consent-ends-unused = It ends earlier after { $duration } without use.
# Where consent.remember is "same".
consent-remembered = Until then you are not asked again for the same access.
# The link to the application, where a redirect is not followed.
consent-continue = Continue
# $site is a host name, sometimes with a port.
consent-continue-to = Continue to { $site }

verifier-title = You have allowed { $consumer }
verifier-type = Type this code into the application:
# $lifetime is one of the duration messages.
verifier-lifetime = It works once, within { $lifetime }. Do not give it to anyone else. Close this page once the application accepts it.
# After the application has used the code.
verifier-taken = { $consumer } has taken the code
verifier-taken-text = You can close this page.

denied-title = You have denied { $consumer }
denied-text = It cannot act for you. You can close this page.
denied-still = { $consumer } can still act for you, by the access that it already has.

# The heading of the page, and the links to it.
applications-title = Connected applications
applications-text = These applications can act for you. Access that you remove here ends at once.
applications-log-out = Log out
applications-withdrawn = { $consumer } can no longer act for you.
applications-none = You have not connected any applications.
applications-none-here = None of these can act for you.
applications-permissions = { $count ->
    [one] { $count } permission
   *[other] { $count } permissions
}
# $date is a date in words.
applications-allowed = Allowed on { $date }
# Where the user was not asked.
applications-given = Given by the operator on { $date }
# A token that the user made for themselves, as a developer of the application.
applications-own = Your own access token, made on { $date }
applications-used = last used on { $date }
applications-unused = not used, or only just now
applications-withdraw = Remove access
applications-more = More
# How often the user has allowed an application.
applications-connections = { $count ->
    [one] { $count } connection
   *[other] { $count } connections
}

# Before the access of an application ends.
withdraw-title = Remove the access of { $consumer }?
withdraw-text = It can then no longer act for you, on any of your devices.
withdraw-cancel = Keep the access

# The open sessions of the user, below the applications.
sessions-title = Where you are logged in
# Names such as Firefox and Windows.
sessions-browser = { $browser } on { $system }
sessions-unknown = Unknown browser
sessions-this = This browser
sessions-since = since { $date }, logged in from { $address }
sessions-open = { $count ->
    [one] { $count } browser
   *[other] { $count } browsers
}
# The link to the page of all sessions.
sessions-all = All { $count } browsers
sessions-others = Log out everywhere else
sessions-end = Log out everywhere

# Before sessions end.
logout-title = Log out of { $service }?
logout-text = You will need to log in again on this browser.
logout-others-title = Log out everywhere else?
logout-others-text = You stay logged in here. All your other browsers have to log in again.
logout-all-title = Log out everywhere?
logout-all-text = All your browsers, this one too, have to log in again.
logout-applications = Connected applications keep their access.
logout-cancel = Stay logged in

# What the user has just done.
notice-out = You are logged out.
notice-out-all = You are logged out everywhere.
notice-out-others = You are logged out everywhere else.
notice-out-one = That browser is logged out.

password-title = Change your password
password-rule = { $count ->
    [one] Use at least { $count } character.
   *[other] Use at least { $count } characters.
}
password-text = All your other browsers will be logged out. Applications that can act for you still can.
password-must-change = An operator has set your password. Choose another one that only you know, to continue.
password-current = Current password
password-new = New password
password-again = Repeat the new password
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
duration-days = { $count ->
    [one] { $count } day
   *[other] { $count } days
}

# The links below every page, where pages.terms_url, pages.privacy_url and pages.help_url are set; then the languages.
footer-terms = Terms of use
footer-privacy = Privacy
footer-help = Help
footer-language = Language

# On error pages: whose request it was, and the way back to its web page.
refusal-consumer = The application is { $consumer }.
refusal-back = Back to { $site }
refusal-developers = For developers
refusal-docs = More about this error

# An activity of a course, at a school: what its learning platform opened in a browser failed. The next five are on the page,
# the last is shown by the platform itself; $reference is the number by which the operator finds the request in the log.
launch-title = The activity did not open
launch-text = Open it again from your course.
launch-busy = Wait a moment, then open it again from your course.
launch-reference = If that does not help, give your teacher this reference:
launch-administrator = For the administrator
launch-message = { launch-title }. { launch-text } { launch-reference } { $reference }

# The page by which the developer of an application sees why its calls were rejected, and has a request checked.
developer-title = Rejected calls of { $consumer }
developer-text = For the developers of this application: which of its calls { $service } rejected, and why. No secret is shown here.
# $time is a time in UTC, such as 2026-01-31T12:00:00Z.
developer-until = This page ends at { $time }. Whoever has its address can read it: do not pass it on.
# $time is the start of the process.
developer-process = It shows what one process of the service has seen since { $time }. If there are several, another one may have seen more: load the page again.
developer-why = Why calls were rejected
developer-none = No call was rejected.
developer-calls-count = { $count ->
    [one] { $count } call
   *[other] { $count } calls
}
# What the calls prove of their sender.
developer-proof-verified = The signature is right.
developer-proof-secrets = The signature is wrong, and was made with your secrets.
developer-proof-none = Not proved: anybody can send your key.
developer-previous = The last of them is signed with your previous secret, which will end.
# $time is the end of the previous secret.
developer-previous-until = It is signed with your previous secret, which ends at { $time }.
developer-observed = These calls went through. They will be rejected once signatures are enforced.
developer-base-strings = Base strings of the last one
developer-hidden = Letters and digits of values and paths are shown as x. What differs is marked.
# The headings of two texts that stand side by side.
developer-right = Right base string
developer-signed = Base string that was signed
developer-last = Last calls
developer-check = Check a request
developer-check-text = Paste a request as it went over the wire, or as a curl command, or the base string that your library signed, or both. It is neither forwarded nor kept, and no secret is shown.
developer-request = Request
developer-base-string = Base string that your library signed
developer-submit = Check
# The findings about a request that was checked; details in English may follow.
developer-check-right = The signature is right. It is not checked here whether the nonce was used before, and whether the call is permitted.
developer-check-wrong = This request is rejected.
developer-check-unknown = The signature is wrong, and no known mistake makes it: compare the consumer secret and the token secret, and the base strings.
developer-check-well-formed = The base string is well-formed. Whether it is that of your request, only the request tells.
developer-check-differs = The base string is not well-formed. What differs is marked.
developer-check-nothing = Paste a request or a base string.
developer-check-unreadable = This cannot be read.
developer-check-other = This request names another consumer.
developer-check-busy = Too many requests are checked at the moment. Try again in a few seconds.

# Files with requests for the tools Bruno and Postman, on pages for developers.
collections-text = Requests with which you can try it, for Bruno and Postman. No secret is in the file: write yours into its variables.

# The page on which a user asks for the keys of applications, and manages them.
register-title = Your application keys
register-text = With a key of its own, an application that you write can call { $service }.
register-none = You have no key.
register-manage = Manage
register-new = A new key
register-name = Name of the application
register-description = What it is for
register-website = Website (optional)
register-contact = Contact: a mail address or a web page
# A callback is the address to which the application wants users sent back.
register-callbacks = Callbacks, one in a line; oob for a program without a web page
register-permissions = Permissions that it needs
register-submit = Ask for the key
register-approval = An operator of { $service } decides on each key. It works once it is approved.
register-sensitive = An operator of { $service } decides on a key with a sensitive permission. Others work at once.
register-key = Key
register-secret = Secret
register-made = The key of { $consumer }
register-once = Copy the secret now. It is not shown again.
register-waiting = Waits for approval
register-works = Works
register-declined = Declined
register-disabled = Disabled
# $text is what an operator wrote.
register-said = The operator wrote: { $text }
register-asked = These callbacks wait for approval:
register-rotate = Make a new secret
register-grace = The old secret works for another 24 hours
register-change = Change the callbacks
register-rejections = See rejected calls
register-end = End the key
register-keep = Keep the key
register-end-title = End the key of { $consumer }?
register-end-text = All its access ends at once, for every user. Nothing brings the key back.
# An access token that developers make for themselves. register-token is a button; register-token-permits is a heading before permissions.
register-token = Make an access token for yourself
register-token-title = Your access token of { $consumer }
register-token-text = With it, the application acts for you as if you had allowed it. A new one ends the one before; Connected applications ends it too.
register-token-permits = It will be able to
register-token-name = Access token
# Details in English follow.
register-invalid = Correct this and send it again:
register-taken = Another application has this name. Choose another one.
register-too-many = There are too many keys at the moment. End one that you do not need, or try again tomorrow.
register-ended = Keys are no longer given out here.

# Error pages: a heading, and what happened and what to do.
error-again = Start again
error-try-again = Try again
# Before the number by which the operator finds the request in the log.
error-request = Reference
error-method = This page cannot be opened like this
error-method-text = Use the button or the link on this site.
error-malformed = This link is broken
error-malformed-no-request = The link is incomplete. Go back to the application and start again.
error-malformed-twice = It names something twice.
error-malformed-permission = It asks for a permission that the application may not ask for.
error-malformed-decision = The form that your browser sent names no decision.
error-malformed-form = The form that your browser sent cannot be read.
error-malformed-user = The proxy in front does not name one user.
error-two-sessions = Two logins at once
error-two-sessions-text = Your browser sent two session cookies for this site, and it cannot be told which is yours. Delete the cookies of this site and try again.
error-forged = This form was not accepted
error-forged-text = It did not come from this site's own page. Nothing was changed.
error-stale = This form is out of date
error-stale-in = You have logged in again since this form was shown. Nothing was changed.
error-stale-out = You have been logged out since this form was shown. Nothing was changed.
error-stale-old = The page was open for too long. Nothing was changed.
error-cookie = Your browser sent no cookie
error-cookie-text = This form works only with a cookie of this site, which holds nothing but a random number. Allow cookies for this site, and start again.
error-unknown = We do not recognise this link
error-unknown-text = The application's link is not valid. Go back to the application and start again.
error-expired = This request has expired
error-expired-text = Too much time has gone by. Go back to the application and start again.
error-used = This request was answered already
error-used-text = Each request can be answered once. Go back to the application, and start again there if needed.
error-disabled = This application is disabled
error-disabled-text = It cannot ask for access right now.
error-ended = Access cannot be given any longer in this way
error-ended-text = This application has to change before it can ask for access again. Access that you allowed earlier stays. Ask the developer of the application.
error-callback = This request cannot be answered
error-callback-text = The address to which the application wants you sent is not registered for it.
error-no-application = No such application
error-no-application-text = Its access may have been removed already. Nothing was changed.
error-link = This link does not work
error-link-text = It has ended, or was never valid. Ask the operator of the service for another one.
error-password = Your password has changed meanwhile
error-password-text = Somebody has set another one since you opened the form: you in another browser, or the operator. Nothing was changed here. Log in with the new password.
error-nobody = You are not logged in
error-nobody-text = Log in on the site you came from, then open this page again.
error-not-admitted = Your account cannot log in here
error-not-admitted-text = It is disabled here, or in conflict with another one. Ask the operator of this service.
error-unavailable = Please try again
error-unavailable-text = The service cannot respond just now. Try again in a few seconds.
# $wait is one of the duration messages.
error-wait = Try again in { $wait }.
error-fault = Something went wrong
error-fault-text = The fault is on this side.
error-login = Log in
error-login-text = You have to log in to see this page.
error-unproved = This address is for applications
error-unproved-text = Programs call it with a signed request. Were you looking for your connected applications?
error-signature = The signature is wrong
error-signature-text = A program sent a signed request. Its developer finds the reason here.
error-forbidden = Not allowed
error-forbidden-text = You may not do this, or you came here from another site. Open the page from this site.
error-not-found = Not found
error-not-found-text = There is nothing at this address. Check that it is spelled correctly.
error-slow = That took too long
error-slow-text = The request took too long. Try again.
error-large = Request too large
error-large-text = Send less at once.
error-misdirected = Wrong address
error-misdirected-text = This service is at another address.
error-rate = Too many requests
error-rate-text = Wait a moment and try again.
error-upstream = Not available
error-upstream-text = The service does not respond. Try again in a few minutes.
error-request-broken = Bad request
error-request-broken-text = What was sent cannot be read. Open the page again.
