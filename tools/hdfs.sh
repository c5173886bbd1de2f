#!/usr/bin/env bash
# tools/hdfs.sh start|stop [FOLDER], tools/hdfs.sh shell FOLDER ARGUMENTS: a real HDFS of this machine for tests: one NameNode
# and DataNodes of Hadoop 2.7.3, which the source package pyspark 2.4.8 of PyPI carries.
# What that lacks is Debian's: a Java runtime and Jersey 1. FOLDER (./.hdfs) keeps all of it.
#   HDFS_DATANODES=2     how many DataNodes; files have as many copies, three at most
#   HDFS_PORT=9820       the NameNode's; WebHDFS is at +50, DataNode i at +100+10i
#   HDFS_BLOCK=134217728 bytes of a block
#   HDFS_JARS=DIR        jars of an earlier start
# "start" ends with a line that sets what the tests ask for: eval "$(tools/hdfs.sh start)".
# "shell" is Hadoop's own client, in Java: shell .hdfs -put FILE hdfs://127.0.0.1:9820/FILE.
set -euo pipefail
command=${1:-}
folder=$(mkdir -p "${2:-.hdfs}" && cd "${2:-.hdfs}" && pwd)
port=${HDFS_PORT:-9820}
count=${HDFS_DATANODES:-2}
jars=${HDFS_JARS:-$folder/jars}
java_jars=/usr/share/java

fail() { echo "hdfs: $*" >&2; exit 1; }

stop() {
  for file in "$folder"/*.pid; do
    [ -f "$file" ] || continue
    kill "$(cat "$file")" 2>/dev/null || true
    rm -f "$file"
  done
}

install() {
  local missing=()
  command -v java >/dev/null || missing+=(openjdk-17-jre-headless)
  [ -e $java_jars/jersey1-servlet.jar ] ||
    missing+=(libjersey1-core-java libjersey1-server-java libjersey1-servlet-java)
  [ -e $java_jars/asm.jar ] || missing+=(libasm-java)
  command -v curl >/dev/null || missing+=(curl)
  [ ${#missing[@]} = 0 ] && return
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
    "${missing[@]}" >/dev/null
}

fetch() {  # the jars; 220 MB come, 42 MB stay
  ls "$jars"/hadoop-hdfs-2.7.3.jar >/dev/null 2>&1 && return
  mkdir -p "$jars"
  local work
  work=$(mktemp -d)
  python3 -m venv "$work/venv"
  # Its setup.py wants a wheel, and trips over what an isolated build brings.
  "$work/venv/bin/pip" install -q setuptools wheel
  "$work/venv/bin/pip" download -q --no-deps --no-build-isolation --no-binary :all: \
    -d "$work" pyspark==2.4.8
  local patterns=()
  for name in hadoop- commons- guava-14 htrace jackson- javax.servlet-api jetty- leveldbjni \
              log4j-1 netty- protobuf-java-2.5 slf4j- xercesImpl avro-1 http jaxb- activation \
              stax-; do
    patterns+=("*/deps/jars/$name*")
  done
  tar xzf "$work"/pyspark-2.4.8.tar.gz --strip-components=3 -C "$jars" --wildcards "${patterns[@]}"
  rm -rf "$work"
}

site() {  # site FILE NAME VALUE ...
  local file=$1
  shift
  { echo '<configuration>'
    while [ $# -gt 0 ]; do
      echo "<property><name>$1</name><value>$2</value></property>"
      shift 2
    done
    echo '</configuration>'; } >"$file"
}

configure() {  # configure FOLDER PORT: of a server whose DataNode has that port
  mkdir -p "$1"
  site "$1/core-site.xml" fs.defaultFS "hdfs://127.0.0.1:$port" hadoop.tmp.dir "$folder/tmp"
  site "$1/hdfs-site.xml" \
    dfs.replication $((count < 3 ? count : 3)) dfs.blocksize "${HDFS_BLOCK:-134217728}" \
    dfs.namenode.fs-limits.min-block-size 1 dfs.namenode.name.dir "file://$folder/name" \
    dfs.namenode.rpc-address "127.0.0.1:$port" \
    dfs.namenode.http-address "127.0.0.1:$((port + 50))" \
    dfs.datanode.data.dir "file://$folder/data$2" dfs.datanode.hostname 127.0.0.1 \
    dfs.datanode.address "127.0.0.1:$2" dfs.datanode.http.address "127.0.0.1:$(($2 + 1))" \
    dfs.datanode.ipc.address "127.0.0.1:$(($2 + 2))" dfs.webhdfs.enabled true \
    dfs.permissions.enabled false dfs.namenode.safemode.extension 0 \
    dfs.heartbeat.interval 1 dfs.namenode.heartbeat.recheck-interval 2000
}

run_java() {  # run_java CONFIGURATION CLASS [ARGUMENT ...], in the place of this shell
  local path=$1:$folder/conf:$jars/*
  shift
  for jar in jersey1-core jersey1-server jersey1-servlet jsr311-api asm; do
    path+=:$java_jars/$jar.jar
  done
  local open=()  # Hadoop 2 looks into Java's own classes
  for package in java.lang java.lang.reflect java.net java.nio java.util java.io sun.nio.ch; do
    open+=(--add-opens "java.base/$package=ALL-UNNAMED")
  done
  open+=(--add-exports java.security.jgss/sun.security.krb5=ALL-UNNAMED
         --add-opens java.security.jgss/sun.security.krb5=ALL-UNNAMED)
  exec java -Xmx256m "${open[@]}" -cp "$path" "$@"
}

server() {  # server NAME CONFIGURATION CLASS [ARGUMENT ...], in the background
  local name=$1 configuration=$2 class=org.apache.hadoop.hdfs.server.$3
  shift 3
  run_java "$configuration" "$class" "$@" >"$folder/$name.log" 2>&1 </dev/null &
  echo $! >"$folder/$name.pid"
}

ready() {  # whether a file can be written: NameNodes refuse that at first
  local url=http://127.0.0.1:$((port + 50))/webhdfs/v1/.ready
  [ "$(curl -s -m 10 -L -o /dev/null -w '%{http_code}' -X PUT -T /dev/null \
       "$url?op=CREATE&overwrite=true&user.name=hdfs")" = 201 ] &&
    curl -s -m 5 "http://127.0.0.1:$((port + 50))/jmx?qry=Hadoop:service=NameNode,name=FSNamesystemState" |
      grep -q "\"NumLiveDataNodes\" : $count"
}

start() {
  stop
  install
  fetch
  for app in hdfs datanode static; do  # the servers' pages, which no jar has
    mkdir -p "$folder/conf/webapps/$app/WEB-INF"
    echo '<web-app/>' >"$folder/conf/webapps/$app/WEB-INF/web.xml"
  done
  printf '%s\n' 'log4j.rootLogger=WARN,out' 'log4j.appender.out=org.apache.log4j.ConsoleAppender' \
    'log4j.appender.out.layout=org.apache.log4j.SimpleLayout' >"$folder/conf/log4j.properties"
  configure "$folder/conf" $((port + 100))
  if [ ! -d "$folder/name/current" ]; then
    server format "$folder/conf" namenode.NameNode -format -force -nonInteractive
    wait "$(cat "$folder/format.pid")" || fail "see $folder/format.log"
    rm "$folder/format.pid"
  fi
  server namenode "$folder/conf" namenode.NameNode
  for ((i = 0; i < count; ++i)); do
    configure "$folder/conf$i" $((port + 100 + 10 * i))
    server "datanode$i" "$folder/conf$i" datanode.DataNode
  done
  for ((i = 0; i < 120; ++i)); do
    sleep 0.5
    ready && break
  done
  [ "$i" -lt 120 ] || fail "not ready after a minute, see the logs in $folder"
  echo "export HEADRACE_TEST_HDFS=hdfs://127.0.0.1:$port HEADRACE_WEBHDFS=127.0.0.1:$((port + 50))" \
    "HEADRACE_TEST_HDFS_FOLDER=$folder"
}

case $command in
  start) start ;;
  stop) stop ;;
  shell) run_java "$folder/conf" org.apache.hadoop.fs.FsShell "${@:3}" ;;
  *) fail "usage: tools/hdfs.sh start|stop [FOLDER] | shell FOLDER ARGUMENTS" ;;
esac
