# SPDX-License-Identifier: MIT
# Which Debian packages each command needs, and how to get them; sourced by ./run and ./check.

packages_run="cmake ninja-build gcc libc6-dev pkgconf libxxhash-dev libffi-dev libseccomp-dev
    liburing-dev libcurl4-openssl-dev libjemalloc-dev liblua5.4-dev"
packages_bench="libuv1-dev libglib2.0-dev"
packages_check="git g++ clang-14 libclang-rt-14-dev llvm-14 clang-format-14 valgrind
    libcmocka-dev lua5.4 python3 strace mold
    curl netcat-openbsd wrk"
packages_kernel="qemu-system-x86 busybox-static cpio"

# Prints those of its arguments that are not installed.
packages_missing() {
    for package in "$@"; do
        status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) || status=none
        # A package of several architectures answers once for each.
        case $status in
        *installed*) [ "$status" != not-installed ] || echo "$package" ;;
        *) echo "$package" ;;
        esac
    done
}

# packages_need yes|no LOG PACKAGE...: makes sure that the packages are there.  Where some are
# missing, root installs them (yes), anybody else gets the line to type and exit code 3.
packages_need() {
    install=$1 log=$2
    shift 2
    if ! command -v dpkg-query >/dev/null; then
        echo "errand: not a Debian system; these must be there: $*" >&2
        return 0
    fi
    missing=$(packages_missing "$@" | tr '\n' ' ')
    missing=${missing% }
    [ -n "$missing" ] || return 0
    line="apt-get update && apt-get install -y --no-install-recommends $missing"
    if [ "$install" = no ] || [ "$(id -u)" != 0 ]; then
        echo "errand: packages are missing; as root:" >&2
        echo "$line" >&2
        exit 3
    fi
    mkdir -p "$(dirname "$log")"
    echo "errand: installing $missing" >&2
    # An update that fails is no end: the lists that are there may do.
    export DEBIAN_FRONTEND=noninteractive
    apt-get update >"$log" 2>&1 || true
    if ! apt-get install -y --no-install-recommends $missing >>"$log" 2>&1; then
        tail -n 5 "$log" >&2
        echo "errand: could not install; as root:" >&2
        echo "$line" >&2
        exit 3
    fi
}
