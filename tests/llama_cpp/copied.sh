#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A program that carries copies of what the adapter's README names, built with the lines that stand there.
#   HEADWISE_LLAMA_DIR  where llama-config.cmake lies
source "$(dirname "${BASH_SOURCE[0]}")/../support/toolchain.sh"

mkdir project
cp -r "$HEADWISE_ROOT/examples/llama_cpp" "$HEADWISE_ROOT/examples/vocabulary" project
rm -r project/llama_cpp/program
ln -s "$HEADWISE_ROOT" project/headwise
cp "$HEADWISE_ROOT/tests/llama_cpp/copied_program.cpp" project/program.cpp
{
    echo "cmake_minimum_required(VERSION 3.24)"
    echo "project(program LANGUAGES CXX)"
    sed -n '/^```cmake$/,/^```$/{/^```/d;p}' project/llama_cpp/README.md
    echo "add_executable(program program.cpp)"
    echo "target_link_libraries(program PRIVATE adapter)"
} >project/CMakeLists.txt
configure project build -Dllama_DIR="$HEADWISE_LLAMA_DIR"
"$HEADWISE_CMAKE" --build build
build/program "$HEADWISE_ROOT/examples/tiny_model/tiny.gguf"
