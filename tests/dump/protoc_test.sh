#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# protoc_test.sh TOOL PROTOC ONNX_FOLDER ONNX_PROTO WORK: what the tool dumps goes through protoc unchanged, in both formats.
set -euo pipefail
tool=$1 protoc=$2 onnx_folder=$3 onnx_proto=$4 work=$5
here=$(cd "$(dirname "$0")" && pwd)
rm -rf "$work" && mkdir -p "$work" && cd "$work"

package=$(sed -n 's/^package \(.*\);/\1/p' "$onnx_folder/$onnx_proto")
for topology in lanes diamond; do
  "$tool" gen "$topology" --nodes 60 --width 4 --labels 3 -o "$topology.mst" 2>/dev/null
  DUMP_GE_GRAPH=1 "$tool" compile "$topology.mst" --force-streams --dump-graph "$topology" >/dev/null
done
cat > odd.mst <<'GRAPH'
graph "odd \"name\""
  input x : f32[2]
  const w : f32[2] = [1.0, -0.1]
  a = Add(x, w) {f=1e-05, n=-3, none=ints[], texts=["a\\b", "\x01\xFF"], t=f32[1] = [0.5]} @name("it's") @label("s1")
  b, c = Split(a) {axis=0, num_outputs=2} @after("it's") @stream(3)
  d = Relu(c)
GRAPH
DUMP_GE_GRAPH=1 "$tool" compile odd.mst --force-streams --dump-graph odd >/dev/null

count=0
for file in lanes/*.pbtxt diamond/*.pbtxt odd/*.pbtxt "$here"/written.pbtxt "$here"/small.pbtxt; do
  "$protoc" -I "$onnx_folder" --encode="$package.ModelProto" "$onnx_folder/$onnx_proto" < "$file" > binary
  "$protoc" -I "$onnx_folder" --decode="$package.ModelProto" "$onnx_folder/$onnx_proto" < binary > again
  cmp "$file" again
  count=$((count + 1))
done
for file in lanes/*.txt diamond/*.txt odd/*.txt "$here"/written.txt; do
  "$protoc" -I "$here" --encode=ge.proto.ModelDef "$here/ge_ir.proto" < "$file" > binary
  "$protoc" -I "$here" --decode=ge.proto.ModelDef "$here/ge_ir.proto" < binary > again
  cmp "$file" again
  count=$((count + 1))
done
test "$count" -ge 30
echo "$count files unchanged"
