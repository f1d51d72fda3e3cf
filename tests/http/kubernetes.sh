#!/bin/sh
# Renders deploy/kubernetes, validates it and the pods of deploy/kserve, and compares both with the program and the
# Dockerfile. Skipped without kubectl or PyPI.
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

top=$here/../..
command -v kubectl >/dev/null || { echo "there is no kubectl, which renders the manifests" && exit 77; }
make_venv kubernetes || exit 77

# got NAME FILTER: prints what jq finds in all manifests together.
got() {
    jq -rs "$2" "$scratch/$1.json"
}

# The first YAML in the README is an installation with all components, and the second adds to it.
cp -R "$top/deploy/kubernetes" "$scratch/kubernetes"
mkdir "$scratch/kubernetes/site"
awk '/^ *```/ { indent = index($0, "`"); is_inside = /yaml$/; next } is_inside { print substr($0, indent) }' \
    "$scratch/kubernetes/README.md" >"$scratch/kubernetes/site/kustomization.yaml"
for folder in base cpu site; do
    kubectl kustomize "$scratch/kubernetes/$folder" >"$scratch/$folder.yaml" 2>"$scratch/err" ||
        abort "$scratch/err" "$folder cannot be rendered"
done
{ cat "$top/deploy/kserve/servingruntime.yaml" && echo --- && cat "$top/deploy/kserve/inferenceservice.yaml"; } \
    >"$scratch/kserve.yaml"
checks=$((checks + 1))
"$venv/bin/python3" "$here/kubernetes.py" "$scratch"/base.yaml "$scratch"/cpu.yaml "$scratch"/site.yaml "$scratch"/kserve.yaml \
    >"$scratch/faults" 2>&1 || fail "$(cat "$scratch/faults")"

# A file that its kustomization does not name would have no effect.
for folder in base cpu monitoring keda; do
    same "the files of $folder" "$(cd "$top/deploy/kubernetes/$folder" && echo *.yaml)" \
        "$({ echo kustomization.yaml && grep -o '[a-z]*\.yaml' "$top/deploy/kubernetes/$folder/kustomization.yaml"; } |
            sort | paste -sd ' ' -)"
done

# check_pod NAME FILTER FILTER: the filters find the container and the pod.
check_pod() {
    container=".[] | $2 // empty" pod=".[] | $3 // empty"
    same "$1: user" "$(sed -n 's/^USER //p' "$top/Dockerfile")" "$(got "$1" "$pod | .securityContext | \"\(.runAsUser):\(.runAsGroup)\"")"
    same "$1: the file of keys" "$(got "$1" "$container | .env[] | select(.name == \"MATMULD_API_KEY_FILE\") | .value")" \
        "$(got "$1" "$container | .volumeMounts[].mountPath")/keys"
    # The program must know each option and take its value. The lame duck is as long as by default, not as in tests.
    {
        printf '%s\n' --unset=MATMULD_LAME_DUCK_MS
        got "$1" "$container | .env[] | select(.value) | \"\(.name)=\(.value)\"" |
            sed "s|^\(MATMULD_API_KEY_FILE\)=.*|\1=$scratch/keys|"
        printf '%s\n' "$MATMULD" --print-config
    } >"$scratch/command"
    checks=$((checks + 1))
    xargs -d '\n' -a "$scratch/command" env >"$scratch/config" 2>"$scratch/err" || fail "$1: $(cat "$scratch/err")"
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
