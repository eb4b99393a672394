"""Reads a calendar file from standard input with icalendar, and writes its events as JSON: times in UTC, days unchanged."""

import json
import sys
from datetime import datetime, timezone

from icalendar import Calendar


def written(value):
    if isinstance(value, datetime):
        return value.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.000Z")
    return value.isoformat()


# Unknown names make icalendar use the file's own time zone definitions.
text = sys.stdin.buffer.read().replace(b"\nTZID:", b"\nTZID:File/").replace(b";TZID=", b";TZID=File/")
calendar = Calendar.from_ical(text)
events = []
for event in calendar.walk("VEVENT"):
    assert not event.errors, event.errors
    geo = event.get("GEO")
    events.append(
        {
            "uid": str(event["UID"]),
            "sequence": int(event["SEQUENCE"]),
            "status": str(event["STATUS"]),
            "summary": str(event["SUMMARY"]),
            "description": str(event.get("DESCRIPTION", "")),
            "location": str(event.get("LOCATION", "")),
            "url": str(event.get("URL", "")),
            "geo": None if geo is None else [geo.latitude, geo.longitude],
            "organizer": [str(event["ORGANIZER"].params["CN"]), str(event["ORGANIZER"])],
            "modified": written(event["LAST-MODIFIED"].dt),
            "start": written(event["DTSTART"].dt),
            "end": written(event["DTEND"].dt) if "DTEND" in event else None,
        }
    )
print(json.dumps(events))
