#!/usr/bin/env python3
"""Computes what the examples must write, from the data and the rules alone. Shares nothing with Mailer.

usage: examples/expected/compute.py [--check]

Writes NAME.stdout.ndjson and NAME.FILE.ndjson beside this script, one compact JSON value a line; with --check it only
compares. The rows of keyed operators come in no particular order across keys, so compare them as multisets.

The rules, in short. Every record carries the watermark W that held just before it: the highest timestamp so far less the
bound. What is due at W closes before the record is looked at. A window closes when W >= its end; a record is late when its
window is gone (W >= end + allowed lateness). When the input ends, every open window closes.
"""
import csv
import datetime
import gzip
import json
import math
import pathlib
import sys
from fractions import Fraction
from zoneinfo import ZoneInfo

HERE = pathlib.Path(__file__).resolve().parent
DATA = HERE.parent / "data"
HOUR = 3_600_000
UTC = datetime.timezone.utc


class Bounded:
    """The watermark of a split: `before(t)` is the one that held when the record with time t came, in ms."""

    def __init__(self, bound):
        self.bound, self.highest = bound, -math.inf

    def before(self, timestamp):
        held = self.highest - self.bound
        self.highest = max(self.highest, timestamp)
        return held


def ms(moment):
    return round(moment.timestamp() * 1000)


def rfc3339(at, zone=UTC):
    text = datetime.datetime.fromtimestamp(at / 1000, zone).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z") if zone is UTC else text


def mean(numbers):
    return plain(float(Fraction(sum(numbers), len(numbers)))) if numbers else None


def percentile(numbers, p):
    return sorted(numbers)[max(math.ceil(p * len(numbers) / 100), 1) - 1] if numbers else None


def plain(number):
    return int(number) if number == int(number) else number


def wordcount():
    counts, rows = {}, []
    for word in ("hello", "mailer", "hello"):
        counts[word] = counts.get(word, 0) + 1
        rows.append({"word": word, "count": counts[word]})
    return {"stdout": rows}


def order_totals():
    sums, rows = {}, []
    orders = [("c1", "completed", 10), ("c1", "pending", 15), ("c1", "completed", 5), ("c2", "completed", 7)]
    for customer, status, amount in orders:
        if status == "completed":
            sums[customer] = sums.get(customer, 0) + amount
            rows.append({"customer": {"id": customer}, "sum": sums[customer]})
    return {"stdout": rows}


def flight_delays():
    """Calendar days of New York; a record belongs to the day of its scheduled departure."""
    zone, clock = ZoneInfo("America/New_York"), Bounded(2 * HOUR)
    days, late, closed = {}, [], -math.inf
    with gzip.open(DATA / "flights-2013-11.csv.gz", "rt", newline="") as file:
        flights = list(csv.DictReader(file))
    for flight in flights:
        hour = datetime.datetime.fromisoformat(flight["time_hour"].replace("Z", "+00:00"))
        scheduled = hour + datetime.timedelta(minutes=int(flight["minute"]))
        record = {
            "origin": flight["origin"],
            "flight": flight["carrier"] + " " + flight["flight"],
            "dest": flight["dest"],
            "scheduled": ms(scheduled),
            "delay": None if flight["dep_delay"] == "NA" else int(flight["dep_delay"]),
            "cancelled": 1 if flight["dep_time"] == "NA" else 0,
        }
        day = scheduled.astimezone(zone).date()
        start, end = midnight(day, zone), midnight(day + datetime.timedelta(days=1), zone)
        closed = max(closed, clock.before(record["scheduled"]))
        if closed >= end:
            late.append(record)
        else:
            days.setdefault((start, end, record["origin"]), []).append(record)
    rows = []
    for (start, end, origin), records in sorted(days.items()):
        delays = [r["delay"] for r in records if r["delay"] is not None]
        rows.append({
            "origin": origin,
            "flights": len(records),
            "cancelled": sum(r["cancelled"] for r in records),
            "meanDelay": mean(delays),
            "p95Delay": percentile(delays, 95),
            "maxDelay": max(delays, default=None),
            "window": {"start": rfc3339(start, zone), "end": rfc3339(end, zone)},
        })
    return {"stdout": rows, "late-flights": late}


def midnight(day, zone):
    return ms(datetime.datetime(day.year, day.month, day.day, tzinfo=zone))


def earthquake_swarms():
    """Sessions per cell. What is stored of a cell: its sessions whose end + lateness the watermark has not reached."""
    gap, lateness, clock = 6 * HOUR, 24 * HOUR, Bounded(12 * HOUR)
    cells, rows, late = {}, [], []

    def close(watermark):
        for cell, sessions in cells.items():
            for session in sessions:
                if not session["told"] and session["end"] <= watermark:
                    tell(cell, session)
            cells[cell] = [s for s in sessions if s["end"] + lateness > watermark]

    def tell(cell, session):
        session["told"] = True
        records = session["records"]
        if len(records) < 5:
            return
        rows.append({
            "cell": {"lat": cell[0], "lon": cell[1]},
            "quakes": len(records),
            "strongest": max(r["mag"] for r in records),
            "medianDepth": percentile([r["depth"] for r in records], 50),
            "place": min(records, key=lambda r: r["time"])["place"],  # of equal times the one that came first
            "networks": len({r["net"] for r in records}),
            "window": {"start": rfc3339(session["start"]), "end": rfc3339(session["end"])},
        })

    with gzip.open(DATA / "earthquakes-2018-02.ndjson.gz", "rt") as file:
        reports = [json.loads(line) for line in file]
    for arrival, report in enumerate(reports):
        watermark = clock.before(report["time"])
        close(watermark)
        if report["type"] != "earthquake":
            continue
        cell = (int(report["latitude"]), int(report["longitude"]))
        record = {**report, "cell": {"lat": cell[0], "lon": cell[1]}}
        start, end = report["time"], report["time"] + gap
        sessions = cells.setdefault(cell, [])
        touched = [s for s in sessions if s["start"] < end and start < s["end"]]
        start = min([start, *(s["start"] for s in touched)])
        end = max([end, *(s["end"] for s in touched)])
        if end + lateness <= watermark:
            late.append(record)
            continue
        arrived = sorted([p for s in touched for p in s["arrived"]] + [(arrival, record)], key=lambda p: p[0])
        session = {"start": start, "end": end, "arrived": arrived, "records": [r for _, r in arrived], "told": False}
        cells[cell] = [s for s in sessions if all(s is not t for t in touched)] + [session]
        if end <= watermark:
            tell(cell, session)  # closed already: the whole row again, at once
    close(math.inf)
    return {"stdout": rows, "late-quakes": late}


def main(check):
    wrong = 0
    for compute in (wordcount, order_totals, flight_delays, earthquake_swarms):
        for output, rows in compute().items():
            path = HERE / f"{compute.__name__.replace('_', '-')}.{output}.ndjson"
            text = "".join(json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n" for row in rows)
            if not check:
                path.write_text(text)
            elif not path.exists() or path.read_text() != text:
                wrong += 1
                print(f"{path.name} differs", file=sys.stderr)
            print(f"{path.name}: {len(rows)} rows")
    return 1 if wrong else 0


sys.exit(main("--check" in sys.argv[1:]))
