#!/usr/bin/env bash
# tools/kerberos.sh start|stop [FOLDER]: a Kerberos of this machine for tests, Debian's
# krb5-kdc: the realm HEADRACE.TEST, a user with a ticket, and the key of a web server on
# localhost. FOLDER (./.kerberos) keeps all of it. Installs what is missing (root or sudo).
#   KDC_PORT=9888    its port
# "start" ends with a line that sets what the tests ask for:
# eval "$(tools/kerberos.sh start)".
set -euo pipefail
command=${1:-}
folder=$(mkdir -p "${2:-.kerberos}" && cd "${2:-.kerberos}" && pwd)
port=${KDC_PORT:-9888}
realm=HEADRACE.TEST
PATH=$PATH:/usr/sbin

fail() { echo "kerberos: $*" >&2; exit 1; }

stop() {
  [ -f "$folder/pid" ] || return 0
  kill "$(cat "$folder/pid")" 2>/dev/null || true
  rm -f "$folder/pid"
}

install() {
  command -v krb5kdc kadmin.local kinit >/dev/null &&
    /usr/bin/python3 -c "import gssapi" 2>/dev/null && return
  echo "kerberos: installing Debian's krb5-kdc, krb5-user and python3-gssapi" >&2
  local root=
  [ "$(id -u)" = 0 ] || root=sudo
  DEBIAN_FRONTEND=noninteractive $root apt-get install -y -q krb5-kdc \
    krb5-admin-server krb5-user python3-gssapi >"$folder/apt.log" 2>&1 ||
    fail "cannot be installed, see $folder/apt.log"
}

start() {
  stop
  install
  rm -f "$folder"/*.keytab "$folder"/principal* "$folder"/ticket
  export KRB5_CONFIG=$folder/krb5.conf KRB5_KDC_PROFILE=$folder/kdc.conf
  cat >"$KRB5_CONFIG" <<END
[libdefaults]
  default_realm = $realm
  dns_lookup_realm = false
  dns_lookup_kdc = false
  rdns = false
  dns_canonicalize_hostname = false
[realms]
  $realm = {
    kdc = 127.0.0.1:$port
  }
END
  cat >"$KRB5_KDC_PROFILE" <<END
[kdcdefaults]
  kdc_listen = 127.0.0.1:$port
  kdc_tcp_listen = 127.0.0.1:$port
[realms]
  $realm = {
    database_name = $folder/principal
    key_stash_file = $folder/stash
    acl_file = $folder/acl
  }
END
  {
    kdb5_util create -s -r $realm -P "$(head -c 18 /dev/urandom | base64)"
    kadmin.local -q "addprinc -randkey ann"
    kadmin.local -q "addprinc -randkey HTTP/localhost"
    kadmin.local -q "ktadd -k $folder/ann.keytab ann"
    kadmin.local -q "ktadd -k $folder/http.keytab HTTP/localhost"
    krb5kdc -P "$folder/pid"
    kinit -k -t "$folder/ann.keytab" -c "$folder/ticket" ann
  } >"$folder/log" 2>&1 || fail "did not start, see $folder/log"
  echo "export KRB5_CONFIG=$KRB5_CONFIG KRB5CCNAME=$folder/ticket" \
    "HEADRACE_TEST_KEYTAB=$folder/http.keytab"
}

case $command in
  start) start ;;
  stop) stop ;;
  *) fail "usage: tools/kerberos.sh start|stop [FOLDER]" ;;
esac
