-- wrk -t 2 -c 64 -d 10s --latency -s bench/load/wrk.lua http://127.0.0.1:8080 -- 64 json
-- Arguments after --: number of rows of the square matrices (default 4), and raw, json, made or stored (default raw).
-- made: the server generates the operands. stored: the stored matrix `load` times itself. With made and stored the reply
-- has no matrix.
local ffi = require "ffi"
local forms = {}

-- Copies floats from memory as they are, because machines with LuaJIT are little-endian.
function forms.raw(edge)
    local elements = ffi.new("float[?]", 2 * edge * edge)
    for index = 0, 2 * edge * edge - 1 do
        elements[index] = 2 * math.random() - 1
    end
    wrk.path = string.format("/v1/matmul?m=%d&k=%d&n=%d", edge, edge, edge)
    wrk.headers["Content-Type"] = "application/octet-stream"
    wrk.body = ffi.string(elements, 8 * edge * edge)
end

local function rows(edge)
    local lines = {}
    for row = 1, edge do
        local cells = {}
        for col = 1, edge do
            cells[col] = string.format("%.7f", 2 * math.random() - 1)
        end
        lines[row] = "[" .. table.concat(cells, ",") .. "]"
    end
    return "[" .. table.concat(lines, ",") .. "]"
end

function forms.json(edge)
    wrk.path = "/v1/matmul"
    wrk.headers["Content-Type"] = "application/json"
    wrk.body = string.format('{"a": %s, "b": %s}', rows(edge), rows(edge))
end

function forms.made(edge)
    wrk.path = string.format("/v1/matmul?m=%d&k=%d&n=%d&a_from=uniform(1)&b_from=uniform(2)&reply=none", edge, edge, edge)
    wrk.body = ""
end

function forms.stored()
    wrk.path = "/v1/matmul?a_from=load&b_from=load&reply=none"
    wrk.body = ""
end

function init(arguments)
    wrk.method = "POST"
    forms[arguments[2] or "raw"](tonumber(arguments[1] or 4))
end
