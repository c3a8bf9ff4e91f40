#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A parent that exports a library which links headwise: configures, builds and installs, whichever way
# headwise came in and whether or not it is to be installed with the parent.
source "$(dirname "${BASH_SOURCE[0]}")/../../support/toolchain.sh"

for fetched in OFF ON; do
    for installed in OFF ON; do
        name=fetched-$fetched-installed-$installed
        configure "$HEADWISE_ROOT/tests/consumer/exporting_parent" "$name" -DBY_FETCH_CONTENT=$fetched \
            -DHEADWISE_INSTALL=$installed -DCMAKE_INSTALL_PREFIX="$PWD/$name-prefix"
        "$HEADWISE_CMAKE" --build "$name"
        "$HEADWISE_CMAKE" --install "$name"
        grep -rq "headwise::attend" "$name-prefix/lib/cmake/engine" || fail "the export does not name headwise::attend"
        there=OFF
        [[ -e $name-prefix/include/headwise/headwise.hpp ]] && there=ON
        [[ $there == "$installed" ]] || fail "HEADWISE_INSTALL=$installed, but headers installed: $there"
    done
done
