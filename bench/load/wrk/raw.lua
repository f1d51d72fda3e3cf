-- wrk -t 2 -c 64 -d 10s --latency -s bench/load/wrk/raw.lua http://127.0.0.1:8080 -- 4
-- Square products as raw float32, of the edge given.
local matrices = dofile(debug.getinfo(1, "S").source:match("^@(.*)raw.lua$") .. "matrices.lua")

function init(arguments)
    local edge = matrices.edge(arguments)
    wrk.method = "POST"
    wrk.path = string.format("/v1/matmul?m=%d&k=%d&n=%d", edge, edge, edge)
    wrk.headers["Content-Type"] = "application/octet-stream"
    wrk.body = matrices.raw(edge) .. matrices.raw(edge)
end
