#!/usr/bin/env bash
# Go's ReverseProxy takes 256 KiB out of an upload, in silence, if the server behind it answers early.
#
# Versions: go 1.26.8 (net/http/httputil), node 20.20.2, git 2.39.5, curl.
# Seen on 2026-11-29, with a server that sends the head of its answer before it has read the request:
#   20,000,000 bytes in chunks   262,145 bytes (256 KiB and one) are missing from the middle. The request
#                                ends regularly at the server, and status 200 reaches the client.
#   a git push of 20 MB          `git http-backend` writes its head first. If its web server hands that on
#                                at once, git says that the pack is damaged. git push sends in chunks
#                                beyond http.postBuffer, 1 MiB.
#   both, with EnableFullDuplex  nothing is missing.
# Go's server discards that much of a request when its answer begins, so that it can use the connection
#   again. The proxy reads the same request meanwhile, and sends on what it gets.
# So a proxy of one's own must call `http.NewResponseController(w).EnableFullDuplex()` first.
# Needs: bash, curl, git, node, go 1.26.
set -euo pipefail

work=$(mktemp -d)
servers=()
trap 'kill "${servers[@]}" 2>/dev/null || true; rm -rf "$work"' EXIT
cd "$work"
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1 GIT_TERMINAL_PROMPT=0

# /count answers how much came and whether it came to its end. All else goes to git, as CGI.
cat >server.mjs <<'END'
import http from 'node:http';
import fs from 'node:fs';
import {spawn} from 'node:child_process';

const count = (request, response) => {
  let received = 0;
  response.flushHeaders();
  response.write('received ');
  request.on('data', (data) => { received += data.length; });
  request.on('end', () => response.end(`${received} bytes, complete: ${request.complete}`));
};

const runGit = (request, response) => {
  const url = new URL(request.url, 'http://localhost');
  const backend = spawn('git', ['http-backend'], {env: {...process.env, GIT_PROJECT_ROOT: process.cwd(),
    GIT_HTTP_EXPORT_ALL: '1', REMOTE_USER: 'a', REQUEST_METHOD: request.method, PATH_INFO: url.pathname,
    QUERY_STRING: url.search.slice(1), CONTENT_TYPE: request.headers['content-type'] ?? ''}});
  backend.stdin.on('error', () => request.resume());
  request.pipe(backend.stdin);

  backend.stdout.once('data', (data) => { // git writes its head at once
    const end = data.indexOf('\r\n\r\n');
    for (const line of data.toString('latin1', 0, end).split('\r\n')) response.setHeader(...line.split(': '));
    response.flushHeaders();
    response.write(data.subarray(end + 4));
    backend.stdout.pipe(response);
  });
};
const server = http.createServer((request, response) => (request.url === '/count' ? count : runGit)(request, response));
server.listen(0, '127.0.0.1', () => fs.writeFileSync('address', `http://127.0.0.1:${server.address().port}`));
END
cat >go.mod <<'END'
module finding

go 1.26
END
cat >main.go <<'END'
package main

import (
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
)

func main() {
	target, err := url.Parse(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	http.Handle("/plain/", http.StripPrefix("/plain", proxy))
	http.Handle("/full/", http.StripPrefix("/full", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := http.NewResponseController(w).EnableFullDuplex(); err != nil {
			log.Fatal(err)
		}
		proxy.ServeHTTP(w, r)
	})))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile("proxy-address", []byte("http://"+listener.Addr().String()), 0o600); err != nil {
		log.Fatal(err)
	}
	log.Fatal(http.Serve(listener, nil))
}
END
GOTOOLCHAIN=go1.26.8 go build -o proxy .

node server.mjs &
servers+=($!)
while [ ! -s address ]; do sleep 0.1; done
./proxy "$(cat address)" 2>proxy.log &
servers+=($!)
while [ ! -s proxy-address ]; do sleep 0.1; done

git init -q source
head -c 20000000 /dev/urandom >source/file
git -C source add file
git -C source -c user.name=A -c user.email=a@example.com commit -q -m first

try() { # NAME URL
	echo "$1: $(curl -sS -X POST -H 'Expect:' -H 'Transfer-Encoding: chunked' --data-binary @source/file "$2/count")"
	git init -q --bare "$1.git"
	git -C source push "$2/$1.git" HEAD:refs/heads/main >log 2>&1 && echo "$1: pushed" ||
		echo "$1: push refused: $(grep -oE 'remote unpack failed' log | head -1)"
}
seen=$(
	try direct "$(cat address)"
	try proxy "$(cat proxy-address)/plain"
	try full-duplex "$(cat proxy-address)/full"
)
printf '%s\n' "$seen"

expected='direct: received 20000000 bytes, complete: true
direct: pushed
proxy: received 19737855 bytes, complete: true
proxy: push refused: remote unpack failed
full-duplex: received 20000000 bytes, complete: true
full-duplex: pushed'
if [ "$seen" != "$expected" ]; then
	echo "this differs from what was seen:"
	diff <(printf '%s\n' "$expected") <(printf '%s\n' "$seen")
	exit 1
fi
