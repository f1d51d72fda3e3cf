"""Users of Locust who multiply EDGE×EDGE matrices, each as soon as the last reply has come. FORM is raw (/v1) or v2, the
Open Inference Protocol with binary data.

    EDGE=512 FORM=v2 locust -f bench/load/locustfile.py --headless -u 64 -t 10s -H http://127.0.0.1:8080
"""

import json
import os
import random
import struct

from locust import FastHttpUser, task

EDGE, FORM = int(os.environ.get("EDGE", 64)), os.environ.get("FORM", "raw")
SIZE = EDGE * EDGE
OPERANDS = struct.pack(f"<{2 * SIZE}f", *(random.uniform(-1, 1) for _ in range(2 * SIZE)))
HEAD = json.dumps({
    "inputs": [{"name": name, "shape": [EDGE, EDGE], "datatype": "FP32", "parameters": {"binary_data_size": 4 * SIZE}} for name in "AB"],
    "parameters": {"binary_data_output": True},
}).encode()  # fmt: skip
REQUESTS = {
    "raw": (f"/v1/matmul?m={EDGE}&k={EDGE}&n={EDGE}", OPERANDS, {}),
    "v2": ("/v2/models/matmul/infer", HEAD + OPERANDS, {"Inference-Header-Content-Length": str(len(HEAD))}),
}
PATH, BODY, HEADERS = REQUESTS[FORM]


class User(FastHttpUser):
    @task
    def multiply(self):
        self.client.post(PATH, data=BODY, headers=HEADERS | {"Content-Type": "application/octet-stream"})
