-- wrk -t 2 -c 64 -d 10s --latency -s bench/load/wrk/transpose.lua http://127.0.0.1:8080 -- 4
-- Transpositions of square raw float32, of the edge given; by the variant that a second argument names.
local matrices = dofile(debug.getinfo(1, "S").source:match("^@(.*)transpose.lua$") .. "matrices.lua")

function init(arguments)
    local edge = matrices.edge(arguments)
    wrk.method = "POST"
    wrk.path = string.format("/v1/transpose?m=%d&n=%d&variant=%s", edge, edge, arguments[2] or "auto")
    wrk.headers["Content-Type"] = "application/octet-stream"
    wrk.body = matrices.raw(edge)
end
