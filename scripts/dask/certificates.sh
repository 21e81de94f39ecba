#!/usr/bin/env bash
# Make a certificate authority of one's own and a certificate that it signs: certificates.sh FOLDER [DAYS]
# The scheduler, all workers and the launching machine share the files ca.pem, cert.pem and key.pem: whoever has them runs
# code on the cluster. Copy them with scp, keep ca-key.pem on one machine, and never commit any of them.
set -euo pipefail
folder=${1:?which folder?} days=${2:-365}
mkdir -p "$folder"
chmod 700 "$folder"
cd "$folder"
umask 077
extensions=$(mktemp)
trap 'rm -f "$extensions"' EXIT
printf 'basicConstraints=CA:FALSE\nextendedKeyUsage=serverAuth,clientAuth\n' >"$extensions"
openssl req -x509 -newkey rsa:3072 -sha256 -nodes -days "$days" -subj "/CN=multilab cluster" \
  -addext basicConstraints=critical,CA:TRUE -keyout ca-key.pem -out ca.pem 2>/dev/null
openssl req -newkey rsa:3072 -sha256 -nodes -subj "/CN=multilab" -keyout key.pem -out request.pem 2>/dev/null
openssl x509 -req -sha256 -days "$days" -in request.pem -CA ca.pem -CAkey ca-key.pem -CAcreateserial \
  -extfile "$extensions" -out cert.pem 2>/dev/null
rm -f request.pem ca.srl
echo "$PWD: ca.pem, cert.pem and key.pem for every machine; ca-key.pem stays here"
