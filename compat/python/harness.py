"""What every program here is told, and how it tells what it did: the address to sign in at, then the member it read."""

import json
import os

ISSUER = os.environ["ISSUER"]
CLIENT_ID = os.environ["CLIENT_ID"]
REDIRECT_URI = os.environ["REDIRECT_URI"]
AUTH = os.environ["AUTH"]  # how the client authenticates
CLIENT_SECRET = os.environ["CLIENT_SECRET"] or None


def sign_in(url):
    """Prints where the member signs in, and returns the address at which they came back."""
    print(url, flush=True)
    return input()


def done(username, again):
    print(json.dumps({"username": username, "again": again}), flush=True)
