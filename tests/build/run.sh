#!/bin/sh
# Tests for which GPUs ./dev run compiles, with fake versions of nvidia-smi, cmake, apt-get and sudo on PATH.
set -eu

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0
cat >"$scratch/nvidia-smi" <<'END'
#!/bin/sh
printf '%s\n' $GPUS
END
cat >"$scratch/cmake" <<'END'
#!/bin/sh
printf '<%s>' "$@"
exit 1
END
printf '#!/bin/sh\nexit 1\n' | tee "$scratch/apt-get" >"$scratch/sudo"
chmod +x "$scratch"/*

# Each row: compute capabilities of the GPUs | expected arguments of cmake
while IFS='|' read -r GPUS arguments; do
    export GPUS
    PATH=$scratch:$PATH ./dev run >"$scratch/out" 2>&1 || :
    grep -qF -e "<--preset><run>$arguments" "$scratch/out" || {
        echo "with the GPUs '$GPUS' it does not call cmake with $arguments: $(cat "$scratch/out")"
        failed=$((failed + 1))
    }
done <<'END'
|<-DMATMULD_CUDA=OFF>
6.1|<-DMATMULD_CUDA=OFF>
[N/A]|<-DMATMULD_CUDA=OFF>
8.6 8.6|<-DMATMULD_CUDA=AUTO><-DMATMULD_CUDA_ARCHITECTURES=86-real>
9.0 7.5|<-DMATMULD_CUDA=AUTO><-DMATMULD_CUDA_ARCHITECTURES=75-real;90a-real>
10.0 12.0|<-DMATMULD_CUDA=AUTO><-DMATMULD_CUDA_ARCHITECTURES=90-virtual>
END

echo "$failed failures"
[ "$failed" -eq 0 ]
