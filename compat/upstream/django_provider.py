"""A platform whose login is django-oidc-provider, set up as in its documentation: one member, and this server as its client."""

import os
from socketserver import ThreadingMixIn
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import django
from django.conf import settings

ORIGIN = f"http://127.0.0.1:{os.environ['PORT']}"
LOGIN_PAGE = """<!doctype html><title>Sign in</title><h1>The platform</h1>
<form method="post">{% csrf_token %}{{ form.as_p }}<button>Sign in to the platform</button></form>"""

settings.configure(
    ALLOWED_HOSTS=["127.0.0.1"],
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": os.environ["DATABASE"]}},
    DEFAULT_AUTO_FIELD="django.db.models.AutoField",
    INSTALLED_APPS=[
        "django.contrib.auth",
        "django.contrib.contenttypes",
        "django.contrib.sessions",
        "oidc_provider",
    ],
    LOGIN_URL="/sign-in",
    MIDDLEWARE=[
        "django.contrib.sessions.middleware.SessionMiddleware",
        "django.middleware.csrf.CsrfViewMiddleware",
        "django.contrib.auth.middleware.AuthenticationMiddleware",
    ],
    ROOT_URLCONF=__name__,
    SECRET_KEY=os.environ["CLIENT_SECRET"],
    SITE_URL=ORIGIN,
    TEMPLATES=[
        {
            "BACKEND": "django.template.backends.django.DjangoTemplates",
            "OPTIONS": {
                "loaders": [
                    ("django.template.loaders.locmem.Loader", {"registration/login.html": LOGIN_PAGE}),
                    "django.template.loaders.app_directories.Loader",
                ]
            },
        }
    ],
    USE_TZ=True,
)
django.setup()

from django.contrib.auth.models import User  # noqa: E402
from django.contrib.auth.views import LoginView  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.core.wsgi import get_wsgi_application  # noqa: E402
from django.urls import include, path  # noqa: E402
from oidc_provider.models import Client, ResponseType  # noqa: E402

urlpatterns = [
    path("sign-in", LoginView.as_view()),
    path("openid/", include("oidc_provider.urls", namespace="oidc_provider")),
]


class Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class Quiet(WSGIRequestHandler):
    def log_message(self, *_):
        pass


call_command("migrate", verbosity=0)
call_command("creatersakey", verbosity=0, stdout=open(os.devnull, "w"))
user = User.objects.create_user(os.environ["USERNAME"], password=os.environ["PASSWORD"])
client = Client(
    name="Member API",
    client_type="confidential",
    client_id="public-user-api",
    client_secret=os.environ["CLIENT_SECRET"],
    require_consent=False,
    jwt_alg="RS256",
)
client.redirect_uris = [os.environ["REDIRECT_URI"]]
client.save()
client.response_types.add(ResponseType.objects.get(value="code"))

server = make_server("127.0.0.1", int(os.environ["PORT"]), get_wsgi_application(), Server, Quiet)
print(user.pk, flush=True)
server.serve_forever()
