#!/usr/bin/env bash
# Puts Debian's arm64 packages of the libraries that Headrace is built with into
# build-arm64/sysroot, for `cmake --preset arm64`. Nothing is installed and the
# system's own lists of packages stay as they are; the compiler and the emulator
# come from the system: g++-aarch64-linux-gnu, qemu-user.
set -euo pipefail
cd "$(dirname "$0")/.."
suite=${DEBIAN_SUITE:-bookworm}
mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
packages=(
  libc6-dev libstdc++-12-dev libgomp1
  libdnnl-dev libeigen3-dev libprotobuf-dev libabsl-dev libleveldb-dev libre2-dev
  libsnappy-dev zlib1g-dev libpng-dev libjpeg62-turbo-dev libwebp-dev libxsimd-dev libcurl4-openssl-dev
  libhwy-dev
  libgtest-dev
)
sysroot=build-arm64/sysroot
for tool in aarch64-linux-gnu-g++ qemu-aarch64; do
  command -v "$tool" >/dev/null ||
    { echo "$tool is missing: apt-get install g++-aarch64-linux-gnu qemu-user" >&2; exit 1; }
done

apt=$PWD/build-arm64/apt
mkdir -p "$sysroot" "$apt"/lists/partial "$apt"/cache/archives/partial
: >"$apt/status"
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main" \
  >"$apt/sources.list"
cat >"$apt/apt.conf" <<CONF
Dir::Etc::sourcelist "$apt/sources.list";
Dir::Etc::sourceparts "-";
Dir::State::lists "$apt/lists";
Dir::State::status "$apt/status";
Dir::Cache "$apt/cache";
APT::Architecture "arm64";
APT::Architectures { "arm64"; };
APT::Install-Recommends "false";
APT::Sandbox::User "";
CONF
export APT_CONFIG=$apt/apt.conf
apt-get -q update
apt-get -q -y --download-only install "${packages[@]}"
for package in "$apt"/cache/archives/*.deb; do
  dpkg-deb -x "$package" "$sysroot"
done
# Links to places from the root on would leave the folder.
find "$sysroot" -type l -lname '/*' | while read -r link; do
  ln -sfn -r "$sysroot$(readlink "$link")" "$link"
done
rm -rf "$apt"
du -sh "$sysroot"
