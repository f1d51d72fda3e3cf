#!/bin/sh
# What GET /v1/variants says that CUDA's kernels use, against what their files say that they take: as the compiler
# reported, and on a GPU as the device reports. Without a GPU the second part is skipped (77).
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

# Shared memory of a block in bytes: op and variant | static | dynamic. Two square tiles of float32, but for the
# padding of one, and for the two pairs of tiles that asynchronous copies take; a word for each thread and step of
# staged_copy; 32 pairs of tiles of tiled_wide; one tile for a transposition.
sizes() {
    cat <<END
matmul naive|0|0
matmul tiled_16|$((2 * 16 * 16 * 4))|0
matmul tiled_dynamic|0|$((2 * 16 * 16 * 4))
matmul tiled_padded|$((32 * 32 * 4 + 32 * 33 * 4))|0
matmul tiled_async|$((2 * 2 * 32 * 32 * 4))|0
matmul staged_copy|$((2 * 8 * 32 * 8 * 4))|0
matmul tiled_wide|0|$((2 * 32 * 16 * 16 * 4))
transpose padded|$((32 * 33 * 4))|0
transpose vectorized|$((64 * 64 * 4))|0
END
}

start
curl -s --max-time 30 "$url/v1/variants" |
    jq '[.variants[] | select(.backend == "cuda") | .name = "\(.op) \(.name)"]' >"$scratch/rows"
# What the device says of its own blocks, against the table of chips.
jq -c '.[] | .name as $name | .occupancy[]? | .name = $name' "$scratch/rows" >"$scratch/occupancy"
while read -r entry; do
    ask /v1/benchmark -d "$(printf '%s' "$entry" | jq '{op: "occupancy", threads_per_block, registers_per_thread, shared_bytes}')"
    same "$entry: by the table" "$(printf '%s' "$entry" | jq -c '[.blocks, .warps, .warps_max, .limiters]')" \
        "$(jq -c '.rows[0] | [.blocks, .warps, .warps_max, .limiters]' "$scratch/got")"
done <"$scratch/occupancy"
stop

sizes >"$scratch/sizes"
while IFS='|' read -r variant static dynamic; do
    same "$variant, compiled: static and dynamic shared bytes" "[[$static,$dynamic]]" \
        "$(jq -c ".[] | select(.name == \"$variant\") | .tile as \$tile | [.compiled[] | select(.tile == \$tile) | [.static_shared_bytes, .dynamic_shared_bytes]] | unique" "$scratch/rows")"
done <"$scratch/sizes"
# Their files say why.
spilling='["matmul spilling","matmul fp32_tensor"]'
same "kernels whose code spills registers" "$spilling" "$(jq -c 'map(select(any(.compiled[]?; .spill_store_bytes > 0)) | .name)' "$scratch/rows")"
same "variants without a report of the compiler" '["matmul blas","matmul auto","transpose auto"]' "$(jq -c 'map(select(has("compiled") | not) | .name)' "$scratch/rows")"
if [ "$(jq 'any(.available)' "$scratch/rows")" = false ]; then
    echo "there is no CUDA device here: skipped"
    finish && exit 77
    exit 1
fi

while IFS='|' read -r variant static dynamic; do
    same "$variant: static and dynamic shared bytes" "[$static,$dynamic]" \
        "$(jq -c ".[] | select(.name == \"$variant\") | [.static_shared_bytes, .dynamic_shared_bytes]" "$scratch/rows")"
done <"$scratch/sizes"
same "kernels that spill registers" "$spilling" "$(jq -c 'map(select(has("local_bytes") and .local_bytes != 0) | .name)' "$scratch/rows")"
same "kernels of which no block fits on a multiprocessor" '[]' \
    "$(jq -c 'map(select(.blocks_per_multiprocessor == 0) | .name)' "$scratch/rows")"
same "variants that are wrong on purpose" '["matmul tiled_racy"]' "$(jq -c 'map(select(.wrong_on_purpose) | .name)' "$scratch/rows")"
same "tiled_dynamic: occupancy by tile" '[4,8,16,32,64,96]' \
    "$(jq -c '.[] | select(.name == "matmul tiled_dynamic") | [.occupancy[].tile]' "$scratch/rows")"
same "tiled_dynamic: its tiles" '[16,[4,8,16,32,64,96]]' \
    "$(jq -c '.[] | select(.name == "matmul tiled_dynamic") | [.tile, .tiles]' "$scratch/rows")"
finish
