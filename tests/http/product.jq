# What every product in JSON is to have, given what its headers say: one line for each thing missing.
def expect(condition; $what): if condition then empty else "a product: expected \($what), got \(del(.c) | tojson)" end;

def spans: ["receive", "decode", "queue", "upload", "kernel", "download", "encode", "total"];

expect((.shape | map(tostring) | join(", ")) == $shape; "shape \($shape), as in Matmul-Shape"),
expect((.c | length) == .shape[0]; "as many rows in c as shape says"),
expect(.shape[1] as $columns | .c | all(length == $columns); "rows of c as long as shape says"),
expect(.dtype == $dtype; "dtype \($dtype), as in Matmul-Dtype"),
expect(.variant == $variant and $variant != "auto"; "variant \($variant), as in Matmul-Variant, and not auto"),
expect(.backend == $backend and $backend != "auto"; "backend \($backend), as in Matmul-Backend, and not auto"),
expect(.device == $device; "device \($device), as in Matmul-Device"),
expect(.gflops | type == "number" and . >= 0; "gflops, a number"),
expect(.batched | type == "number" and . >= 1; "batched, a count"),
expect((.timing | keys) == (spans | map(. + "_ms") | sort); "the spans \(spans) in timing"),
expect(.timing | all(.[]; type == "number" and . >= 0); "milliseconds in timing"),
expect(.timing | .total_ms * 1.000001 + 0.000001 >= .queue_ms + .kernel_ms; "a total of at least queue and kernel"),
# The two are written at different moments, but in milliseconds both.
expect(.timing.kernel_ms as $json | ($timing | capture("kernel;dur=(?<ms>[0-9.]+)").ms | tonumber) as $header
       | ($json - $header) | fabs < 0.001; "the kernel's time as in Server-Timing \($timing)")
