#!/bin/sh
# Renders deploy/kubernetes, validates its core kinds and the pods of deploy/kserve, and compares both with the program
# and the Dockerfile. Skipped without kubectl or PyPI.
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

top=$here/../..
command -v kubectl >/dev/null || { echo "there is no kubectl, which renders the manifests" && exit 77; }
make_venv kubernetes || exit 77

# validate NAME FILE…: writes the manifests to $scratch/NAME.json.
validate() {
    name=$1
    shift
    checks=$((checks + 1))
    "$venv/bin/python3" "$here/kubernetes.py" "$@" >"$scratch/$name.json" 2>"$scratch/faults" ||
        fail "$name: $(cat "$scratch/faults")"
}

# got NAME FILTER: prints what jq finds in all manifests together.
got() {
    jq -rs "$2" "$scratch/$1.json"
}

# The first YAML in the README is an installation with all components, and the second adds to it.
mkdir "$scratch/rendered"
cp -R "$top/deploy/kubernetes" "$scratch/kubernetes"
mkdir "$scratch/kubernetes/site"
awk '/^ *```/ { indent = index($0, "`"); is_inside = /yaml$/; next } is_inside { print substr($0, indent) }' \
    "$scratch/kubernetes/README.md" >"$scratch/kubernetes/site/kustomization.yaml"
for folder in base cpu site; do
    checks=$((checks + 1))
    kubectl kustomize "$scratch/kubernetes/$folder" >"$scratch/rendered/$folder.yaml" || fail "$folder cannot be rendered"
    validate "$folder" "$scratch/rendered/$folder.yaml"
done
validate kserve "$top"/deploy/kserve/*.yaml

# A file that its kustomization does not name would have no effect.
for folder in base cpu monitoring keda; do
    validate "of-$folder" "$top/deploy/kubernetes/$folder/kustomization.yaml"
    same "the files of $folder" "$(cd "$top/deploy/kubernetes/$folder" && echo *.yaml)" \
        "$(got "of-$folder" '[.[0] | .resources[]?, .patches[]?.path | strings | select(startswith("../") | not)] +
            ["kustomization.yaml"] | sort | join(" ")')"
done

# check_pod NAME FILTER-OF-CONTAINER FILTER-OF-POD PORT
check_pod() {
    container=".[] | $2 // empty" pod=".[] | $3 // empty"
    same "$1: user" "$(sed -n 's/^USER //p' "$top/Dockerfile")" "$(got "$1" "$pod | .securityContext | \"\(.runAsUser):\(.runAsGroup)\"")"
    same "$1: the file of keys" "$(got "$1" "$container | .env[] | select(.name == \"MATMULD_API_KEY_FILE\") | .value")" \
        "$(got "$1" "$container | .volumeMounts[].mountPath")/keys"
    # The program must know each option and take its value.
    got "$1" "$container | .env[] | select(.value) | \"\(.name)=\(.value)\"" |
        sed "s|^\(MATMULD_API_KEY_FILE\)=.*|\1=$scratch/keys|" >"$scratch/env"
    checks=$((checks + 1))
    xargs -d '\n' -a "$scratch/env" sh -c 'exec env "$@" "$MATMULD" --print-config' sh >"$scratch/config" 2>"$scratch/err" ||
        fail "$1: $(cat "$scratch/err")"
    same "$1: warnings of the program" "" "$(cat "$scratch/err")"
    same "$1: port" "$(sed -n 's/^port = //p' "$scratch/config")" "$(got "$1" "$container | .ports[].containerPort")"
    stop_ms=$(awk '/^(lame-duck|drain-timeout)-ms = / { sum += $3 } END { print sum }' "$scratch/config")
    at_most "$1: milliseconds from SIGTERM to the end" $(($(got "$1" "$pod | .terminationGracePeriodSeconds") * 1000 - 1000)) "$stop_ms"
    # Probes have no key.
    for path in $(got "$1" "$container | .startupProbe, .readinessProbe, .livenessProbe | .httpGet.path"); do
        same "$1: GET $path" 200 "$(status_of "$url$path")"
    done
}

(umask 077 && echo "alice a-long-enough-key-0123456789abcdef" >"$scratch/keys")
start --backend cpu --api-key-file "$scratch/keys" --open-metrics
for name in base cpu site; do
    check_pod "$name" '.spec.template.spec.containers[0]?' '.spec.template.spec?'
done
check_pod kserve '.spec.containers[0]?' '.spec.predictor?'
for metric in $(got site '.[] | .spec.triggers[]?.metadata.query' | grep -o 'matmuld_[a-z_]*'); do
    same "scaling: $metric" 0 "$(metric "${metric#matmuld_}")"
done
stop

same "GPUs of a pod" "1 null 1" "$(for name in base cpu site; do
    got "$name" '.[] | .spec.template.spec.containers[0]?.resources.limits // empty | .["nvidia.com/gpu"]'
done | paste -sd ' ' -)"
same "image" registry.example/matmuld:1 "$(got site '.[] | .spec.template.spec.containers[0]?.image // empty')"
same "replicas with KEDA" null "$(got site '.[] | select(.kind == "Deployment") | .spec.replicas')"
same "the patch of the README" 256MiB \
    "$(got site '.[] | .spec.template.spec.containers[0]?.env[]? | select(.name == "MATMULD_MAX_BODY") | .value')"
finish
