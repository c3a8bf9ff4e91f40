#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# All but io pulls in the standard library and nothing else, and lives beside a consumer's own Eigen.
source "$(dirname "${BASH_SOURCE[0]}")/../../support/toolchain.sh"

echo '#include <headwise/headwise.hpp>' >core.cpp
each_header | grep -v '^headwise/io/' | sed 's/.*/#include <&>/' >>core.cpp
for compiler in "${compilers[@]}"; do
    "$compiler" -std=c++20 -M "${includes[@]}" core.cpp >reads
    if grep -iE 'eigen|nlohmann|hwy/' reads; then
        fail "a header outside of io includes those above"
    fi
done

# Names like a dependency's, taken by the consumer before ours.
cat >own_eigen.cpp <<'END'
namespace Eigen { struct Matrix; int Map = 0; }
namespace nlohmann { struct json; }
struct json;
#define EIGEN_WORLD_VERSION 99
#include <headwise/headwise.hpp>
int main() { return Eigen::Map; }
END
for compiler in "${compilers[@]}"; do
    "$compiler" -std=c++20 -I"$HEADWISE_ROOT/include" own_eigen.cpp -o own_eigen
    ./own_eigen
done
