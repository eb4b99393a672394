# Makes the calls in CALLS with openapi-python-client's client, and prints each result.
import importlib
import json
import os
import pkgutil
import re

from client import AuthenticatedClient, api
from client.models import ProfileChanges

client = AuthenticatedClient(
    base_url=os.environ["BASE_URL"], token=os.environ["API_KEY"], prefix="", auth_header_name="X-API-Key"
)
modules = {module.name.split(".")[-1]: module.name for module in pkgutil.walk_packages(api.__path__, "client.api.")}

given = []
with open(os.environ["CALLS"]) as file:
    calls = json.load(file)
for call in calls:
    name = re.sub("[A-Z]", lambda letter: "_" + letter[0].lower(), call["operation"])
    function = importlib.import_module(modules[name]).sync_detailed
    body = {"body": ProfileChanges.from_dict(call["body"])} if "body" in call else {}
    response = function(client=client, **call["parameters"], **body)
    given.append({"status": response.status_code, "body": response.parsed.to_dict()})
print(json.dumps(given))
