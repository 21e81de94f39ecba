#!/usr/bin/env bash
# A PostgreSQL server for MLflow's store: scripts/postgres.sh start|stop|status FOLDER [PORT]
# FOLDER holds everything (database, password, log). `start` prints the address for --backend-store-uri on its last line.
# The server listens on 127.0.0.1 and runs as an unprivileged user: the caller, or of root the user `postgres`.
# Exit code 77, with the reason, where PostgreSQL or such a user is missing (Debian: apt-get install postgresql).
set -euo pipefail
umask 077

skip() { echo "skipped: $*" >&2; exit 77; }
usage() { echo "usage: scripts/postgres.sh start|stop|status FOLDER [PORT]" >&2; exit 2; }

verb=${1:-} folder=${2:-} port=${3:-}
case $verb in start | stop | status) ;; *) usage ;; esac
[ -n "$folder" ] || usage

programs=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -n 1 || true)
[ -n "$programs" ] || programs=$(dirname "$(command -v initdb || echo /none/initdb)")
[ -x "$programs/initdb" ] || skip "PostgreSQL is not installed (Debian: apt-get install postgresql)"

as_user=()
if [ "$(id -u)" = 0 ]; then
  id postgres >/dev/null 2>&1 || skip "root may not run a PostgreSQL server, and there is no user postgres"
  command -v runuser >/dev/null || skip "root needs the program runuser to start PostgreSQL as another user"
  as_user=(runuser -u postgres --)
fi

mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
data=$folder/data
if [ "$(id -u)" = 0 ]; then chown postgres "$folder"; fi
cd "$folder"
"${as_user[@]}" test -w "$folder" || { echo "the user postgres cannot write to $folder: choose a folder it may enter" >&2; exit 2; }
control() { "${as_user[@]}" "$programs/pg_ctl" -D "$data" "$@"; }

case $verb in
  status) control status ;;
  stop) control stop -m fast -w >/dev/null && echo "stopped" ;;
  start)
    if [ ! -f "$data/PG_VERSION" ]; then
      password=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
      printf '%s' "$password" >password
      if [ "$(id -u)" = 0 ]; then chown postgres password; fi
      "${as_user[@]}" "$programs/initdb" -D "$data" -U mlflow --pwfile="$folder/password" -A scram-sha-256 -E UTF8 \
        --locale=C.UTF-8 >log.initdb 2>&1 || { cat log.initdb >&2; exit 1; }
    fi
    password=$(cat password)
    if ! control status >/dev/null 2>&1; then
      [ -n "$port" ] || port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
      control start -w -t 120 -l "$folder/log" \
        -o "-c listen_addresses=127.0.0.1 -c port=$port -c unix_socket_directories='' -c max_connections=100" \
        >/dev/null || { tail -n 20 log >&2; exit 1; }
    fi
    port=$(sed -n 4p "$data/postmaster.pid")
    export PGPASSWORD=$password
    exists=$("$programs/psql" -h 127.0.0.1 -p "$port" -U mlflow -d postgres -tAc "select 1 from pg_database where datname = 'mlflow'")
    [ "$exists" = 1 ] || "$programs/createdb" -h 127.0.0.1 -p "$port" -U mlflow mlflow
    echo "postgresql+psycopg2://mlflow:$password@127.0.0.1:$port/mlflow"
    ;;
esac
