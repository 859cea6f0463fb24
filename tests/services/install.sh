#!/bin/sh
# Installs what tests with real servers need: Java, Maven, PostgreSQL, OpenSSL, and Go to build toxiproxy.
# Does nothing where all is there. On Debian and Ubuntu; elsewhere it says what is missing.
set -eu

has() { command -v "$1" >/dev/null 2>&1; }
has_postgres() {
  # As root it runs as the user that comes with the package.
  [ "$(id -u)" != 0 ] || id postgres >/dev/null 2>&1 || return 1
  has initdb && has postgres && return
  for folder in /usr/lib/postgresql/*/bin; do [ -x "$folder/initdb" ] && return; done
  return 1
}
cache=${MAILER_SERVICES_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/mailer-services}
has_toxiproxy() {
  for program in "$cache"/toxiproxy-*/server; do [ -x "$program" ] && return; done
  return 1
}

packages=
has java || packages="$packages openjdk-17-jre-headless"
has mvn || packages="$packages maven"
has_postgres || packages="$packages postgresql"
has openssl || packages="$packages openssl"
has go || has_toxiproxy || packages="$packages golang-go"
[ "$(id -u)" != 0 ] || has setpriv || packages="$packages util-linux"
[ -n "$packages" ] || exit 0

if ! has apt-get; then
  echo "tests with real servers need these, or what they are called here:$packages" >&2
  exit 1
fi
sudo=
[ "$(id -u)" = 0 ] || sudo=sudo
# Java 17 has another package where the system has gone on to a later one.
$sudo apt-get update -qq
apt-cache show openjdk-17-jre-headless >/dev/null 2>&1 ||
  packages=$(echo "$packages" | sed 's/openjdk-17-jre-headless/default-jre-headless/')
# shellcheck disable=SC2086 # a list of names
DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -qq --no-install-recommends $packages
