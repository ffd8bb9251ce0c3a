#!/usr/bin/env bash
# The libraries as others see them: installed, moved elsewhere, and then docs/one-process.c built
# against nothing but what was installed, once with pkg-config and once with CMake's find_package.
# Each must say what the one says that was built with the project.
#
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck disable=SC2015,SC2046,SC2086 # `fail` may follow either; flags are lists of words
set -eu
build=$(dirname "$KBTP")

fail() {
    echo "library: $1" >&2
    exit 1
}

cmake --install "$build" --prefix "$PWD/first" >install.log || fail "cmake --install: see install.log"
mv first prefix
PKG_CONFIG_PATH=$(dirname "$(find "$PWD/prefix" -name kbtp.pc)")
LD_LIBRARY_PATH=$(dirname "$PKG_CONFIG_PATH") # of shared ones
export PKG_CONFIG_PATH LD_LIBRARY_PATH
"$build/docs/one-process" >expected

# Every header stands alone, in plain C11, and needs nothing that is not there.
find prefix/include/kbtp -name '*.h' -printf '%P\n' >headers
while read -r header; do
    printf '#include "%s"\n' "$header" >one.c
    "$CC" -std=c11 -pedantic-errors -Wall -Wextra -Werror -fsyntax-only \
        $(pkg-config --cflags kbtp-sim) one.c || fail "$header"
done <headers
grep -qx ref/initiator.h headers || fail 'headers are missing'
# Of sim/ only what a program needs: worlds, scenarios and checkers are the simulator's own.
[ "$(grep '^sim/' headers | sort | xargs)" = 'sim/device.h sim/rnic_config.h' ] ||
    fail 'headers of sim/: others than device.h and rnic_config.h'

# pkg-config.
pkg-config --exact-version="$(cd "$build" && ./kbtp --version | sed 's/[^0-9.]//g')" kbtp
"$CC" $CFLAGS -std=c11 -pedantic-errors -Wall -Wextra -Wconversion -Wshadow -Werror \
    -o with-pkg-config "$SOURCE/docs/one-process.c" $(pkg-config --cflags --libs kbtp-sim)
./with-pkg-config | cmp - expected

# find_package.
mkdir project
cat >project/CMakeLists.txt <<END
cmake_minimum_required(VERSION 3.25)
project(outside LANGUAGES C)
find_package(kbtp 0.1 REQUIRED CONFIG)
add_executable(with-cmake "$SOURCE/docs/one-process.c")
target_link_libraries(with-cmake PRIVATE kbtp::sim)
END
cmake -S project -B project/build -DCMAKE_PREFIX_PATH="$PWD/prefix" >cmake.log &&
    cmake --build project/build >>cmake.log || fail "find_package: see cmake.log"
project/build/with-cmake | cmp - expected

# The protocol's library stands alone: with a provider of one's own nothing of sim/ is needed.
cat >alone.c <<'END'
#include "ref/initiator.h"
#include "ref/worker.h"
int main(void)
{
    struct kbtp_initiator_config config = {.depth = 1};
    size_t octets[2];
    kbtp_initiator_memory(&config, &octets[0], &octets[1]);
    return octets[0] == 0 || (void *)kbtp_worker_poll == (void *)kbtp_worker_init;
}
END
"$CC" $CFLAGS -o alone alone.c $(pkg-config --cflags --libs kbtp)
./alone
