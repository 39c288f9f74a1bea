#!/usr/bin/env bash
# Puts uwf's binary where the action's next step finds it, and writes its path to
# GITHUB_OUTPUT as "binary":
#
#   UWF_BINARY, if it is set: a binary that is there already;
#   else that of the release which this action belongs to, if it is one. Its checksum
#   stands in checksums.txt beside this file: only what was released is run, wherever
#   it comes from (UWF_RELEASES names another place, such as a mirror);
#   else one that is built from this action's own source, with the runner's go.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
releases=https://github.com/united-workforce/uwf/releases/download
work=

fail() {
	printf '::error title=uwf::%s\n' "$1" >&2
	exit 2
}

trap 'if [ -n "$work" ]; then rm -rf "$work"; fi' EXIT

# found ends with the path of the binary.
found() {
	printf 'binary=%s\n' "$1" >>"${GITHUB_OUTPUT:-/dev/stdout}"
	exit 0
}

# platform prints what releases call this machine.
platform() {
	local os arch
	case "${RUNNER_OS:-$(uname -s)}" in
	Linux | linux) os=linux ;;
	macOS | Darwin) os=darwin ;;
	*) fail "uwf has no binary for ${RUNNER_OS:-$(uname -s)}: use a job on Linux or macOS" ;;
	esac
	case "${RUNNER_ARCH:-$(uname -m)}" in
	X64 | x86_64 | amd64) arch=amd64 ;;
	ARM64 | arm64 | aarch64) arch=arm64 ;;
	*) fail "uwf has no binary for ${RUNNER_ARCH:-$(uname -m)}: use a job on an x64 or arm64 machine" ;;
	esac
	printf '%s_%s\n' "$os" "$arch"
}

# sum prints a file's SHA-256.
sum() {
	if command -v sha256sum >/dev/null; then
		sha256sum "$1" | cut -d ' ' -f 1
	else
		shasum -a 256 "$1" | cut -d ' ' -f 1
	fi
}

# release gets the binary of a version. checksums.txt is "# vX.Y.Z", then "SHA256  FILE"
# for each file of the release.
release() {
	local version=$1 file want target from
	file=uwf_$(platform)
	want=$(awk -v file="$file" '$2 == file { print $1 }' "$here/checksums.txt")
	if [[ ! $want =~ ^[0-9a-f]{64}$ ]]; then fail "release $version of uwf has no $file"; fi
	target=${RUNNER_TOOL_CACHE:-${RUNNER_TEMP:-/tmp}}/uwf/$version/$file/uwf
	# The folder outlives the job on runners of one's own: what is there is checked too.
	if [ -x "$target" ] && [ "$(sum "$target")" = "$want" ]; then found "$target"; fi
	from=${UWF_RELEASES:-$releases}
	work=$(mktemp -d "${RUNNER_TEMP:-/tmp}/uwf-install.XXXXXX")
	curl --fail --silent --show-error --location --retry 4 --retry-connrefused --max-time 300 \
		--output "$work/uwf" "$from/$version/$file" ||
		fail "release $version of uwf can't be downloaded: check the runner's network, or set UWF_BINARY to a binary that is there"
	if [ "$(sum "$work/uwf")" != "$want" ]; then fail "what was downloaded as $file is not what release $version of uwf holds: its checksum differs"; fi
	chmod 0755 "$work/uwf"
	mkdir -p "$(dirname "$target")" && mv -f "$work/uwf" "$target"
	found "$target"
}

# build makes the binary from the source that this action came with.
build() {
	local top target
	top=$(cd "$here/../../.." && pwd)
	command -v go >/dev/null ||
		fail "there is no release for this version of the action, and no go to build it with: use a released version, set UWF_BINARY, or add actions/setup-go before"
	target=${RUNNER_TEMP:-/tmp}/uwf-built/uwf
	mkdir -p "$(dirname "$target")"
	(cd "$top" && CGO_ENABLED=0 go build -trimpath -buildvcs=false -o "$target" ./cmd/uwf) ||
		fail "uwf can't be built from $top"
	found "$target"
}

if [ -n "${UWF_BINARY:-}" ]; then
	if [ ! -x "$UWF_BINARY" ]; then fail "UWF_BINARY is $UWF_BINARY, which is no program"; fi
	found "$UWF_BINARY"
fi
if [ -f "$here/checksums.txt" ]; then
	version=$(sed -n '1s/^# \(v[0-9][0-9A-Za-z.+-]*\)$/\1/p' "$here/checksums.txt")
	if [ -z "$version" ]; then fail "$here/checksums.txt doesn't begin with a version"; fi
	release "$version"
fi
build
