"""django-allauth: a Django application with one provider, driven by Django's own test client."""

from urllib.parse import urlsplit

import django
from django.conf import settings
from django.core.management import call_command


class Refused(Exception):
    pass


def browser(app):
    if not settings.configured:
        provider = app.settings["provider"]
        settings.configure(
            SECRET_KEY="only-of-this-test",
            ALLOWED_HOSTS=["*"],
            DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
            INSTALLED_APPS=[
                "django.contrib.auth",
                "django.contrib.contenttypes",
                "django.contrib.sessions",
                "django.contrib.messages",
                "allauth",
                "allauth.account",
                "allauth.socialaccount",
                f"allauth.socialaccount.providers.{provider}",
            ],
            MIDDLEWARE=[
                "django.contrib.sessions.middleware.SessionMiddleware",
                "django.contrib.auth.middleware.AuthenticationMiddleware",
                "django.contrib.messages.middleware.MessageMiddleware",
                "allauth.account.middleware.AccountMiddleware",
            ],
            ROOT_URLCONF="allauth.urls",
            TEMPLATES=[
                {
                    "BACKEND": "django.template.backends.django.DjangoTemplates",
                    "APP_DIRS": True,
                    "OPTIONS": {
                        "context_processors": [
                            "django.template.context_processors.request",
                            "django.contrib.auth.context_processors.auth",
                            "django.contrib.messages.context_processors.messages",
                        ]
                    },
                }
            ],
            SOCIALACCOUNT_PROVIDERS={provider: {"APP": {"client_id": app.key, "secret": app.secret, "key": ""}}},
            SOCIALACCOUNT_LOGIN_ON_GET=True,
            SOCIALACCOUNT_STORE_TOKENS=True,
            ACCOUNT_EMAIL_VERIFICATION="none",
            DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
        )
        django.setup()
        call_command("migrate", verbosity=0)
    from django.test import Client

    return Client(SERVER_NAME=urlsplit(app.callback).netloc)


def flow(app):
    client = browser(app)
    from allauth.socialaccount.models import SocialAccount, SocialToken

    start = client.get(f"/{app.settings['provider']}/login/", secure=True)
    if start.status_code != 302:
        raise Refused(f"{start.status_code}: {start.context['auth_error'] if start.context else start.content}")
    back = urlsplit(app.decide(start["Location"]))
    end = client.get(f"{back.path}?{back.query}", secure=True)
    if "/cancelled" in end["Location"]:
        raise Refused(end["Location"])
    token, account = SocialToken.objects.get(), SocialAccount.objects.get()
    return token.token, token.token_secret, {"uid": account.uid}
