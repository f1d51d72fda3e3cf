-- What the scripts beside this one share: random matrices of an edge, as each form of a request has them.
-- The edge is the first argument after --, or 4.
local ffi = require "ffi"
local matrices = {}

function matrices.edge(arguments)
    local edge = tonumber(arguments[1] or 4)
    assert(edge and edge >= 1 and edge <= 4096 and edge % 1 == 0, "the edge is a number from 1 to 4096")
    return edge
end

-- Little-endian float32 in [-1, 1), as LuaJIT has them in memory on the machines that it runs on.
function matrices.raw(edge)
    local elements = ffi.new("float[?]", edge * edge)
    for index = 0, edge * edge - 1 do
        elements[index] = 2 * math.random() - 1
    end
    return ffi.string(elements, 4 * edge * edge)
end

function matrices.json(edge)
    local rows = {}
    for row = 1, edge do
        local cells = {}
        for col = 1, edge do
            cells[col] = string.format("%.7f", 2 * math.random() - 1)
        end
        rows[row] = "[" .. table.concat(cells, ",") .. "]"
    end
    return "[" .. table.concat(rows, ",") .. "]"
end

-- A .npy file of version 1.0, with a header of 128 bytes.
function matrices.npy(edge)
    local shape = string.format("{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }", edge, edge)
    return "\147NUMPY\1\0\118\0" .. shape .. string.rep(" ", 117 - #shape) .. "\n" .. matrices.raw(edge)
end

return matrices
