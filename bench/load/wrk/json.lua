-- wrk -t 2 -c 64 -d 10s --latency -s bench/load/wrk/json.lua http://127.0.0.1:8080 -- 4
-- Square products as JSON, of the edge given. With raw as a second argument the reply is asked for raw.
local matrices = dofile(debug.getinfo(1, "S").source:match("^@(.*)json.lua$") .. "matrices.lua")

function init(arguments)
    local edge = matrices.edge(arguments)
    wrk.method = "POST"
    wrk.path = "/v1/matmul"
    wrk.headers["Content-Type"] = "application/json"
    if arguments[2] == "raw" then
        wrk.headers["Accept"] = "application/octet-stream"
    end
    wrk.body = string.format('{"a": %s, "b": %s}', matrices.json(edge), matrices.json(edge))
end
