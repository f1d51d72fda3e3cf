-- wrk -t 2 -c 64 -d 10s --latency -s bench/load/wrk/multipart.lua http://127.0.0.1:8080 -- 4
-- Square products as a form of two .npy files, of the edge given.
local matrices = dofile(debug.getinfo(1, "S").source:match("^@(.*)multipart.lua$") .. "matrices.lua")
local boundary = "matmuld-load-5d1f7a"

local function part(name, edge)
    return "--" .. boundary .. "\r\n" ..
        string.format('Content-Disposition: form-data; name="%s"; filename="%s.npy"\r\n', name, name) ..
        "Content-Type: application/octet-stream\r\n\r\n" .. matrices.npy(edge) .. "\r\n"
end

function init(arguments)
    local edge = matrices.edge(arguments)
    wrk.method = "POST"
    wrk.path = "/v1/matmul"
    wrk.headers["Content-Type"] = "multipart/form-data; boundary=" .. boundary
    wrk.body = part("a", edge) .. part("b", edge) .. "--" .. boundary .. "--\r\n"
end
