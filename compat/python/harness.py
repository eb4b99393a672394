"""The input and output of every program in this folder, which prints the sign-in URL, then the member that it read."""

import json
import os

ISSUER = os.environ["ISSUER"]
CLIENT_ID = os.environ["CLIENT_ID"]
REDIRECT_URI = os.environ["REDIRECT_URI"]
AUTH = os.environ["AUTH"]  # how the client authenticates
CLIENT_SECRET = os.environ["CLIENT_SECRET"] or None


def sign_in(url):
    """Prints the sign-in URL, and returns the URL with which the member returned."""
    print(url, flush=True)
    return input()


def done(username, again):
    print(json.dumps({"username": username, "again": again}), flush=True)
