# Checks a page in Prometheus' text format. Prints errors, and ends with status 1 if there are any.
function fault(what) {
    print "line " NR ": " what ": " $0
    faults++
}

# Returns the name of a sample's family: the name without the suffix that histogram samples have.
function family_of(name, short) {
    short = name
    if (sub(/_(bucket|sum|count)$/, "", short) && type[short] == "histogram")
        return short
    return name
}

function end_histogram() {
    if (series != "" && (last_bound != "+Inf" || last_bucket != count_value))
        fault("the histogram before this ends with le=" last_bound ", " last_bucket ", but has the count " count_value)
    series = ""
}

/^# HELP / {
    if ($3 in help || NF < 4)
        fault("HELP twice, or without a text")
    help[$3] = 1
    next
}

/^# TYPE / {
    if ($3 in type || !($3 in help) || $4 !~ /^(counter|gauge|histogram)$/)
        fault("TYPE twice, without HELP, or unknown")
    if (($4 == "counter") != ($3 ~ /_total$/))
        fault("counters, and nothing else, end in _total")
    type[$3] = $4
    current = $3
    next
}

{
    samples++
    if ($0 !~ /^[a-z_]+([{][a-z_]+="([^"\\]|\\.)*"(,[a-z_]+="([^"\\]|\\.)*")*[}])? [^ ]+$/)
        fault("malformed")
    value = $NF
    if (value !~ /^(NaN|[+-]Inf|[+-]?[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?)$/)
        fault("no number")
    name = $0
    sub(/ [^ ]+$/, "", name)
    if (name in seen)
        fault("a sample twice")
    seen[name] = 1
    bare = name
    sub(/[{].*/, "", bare)
    if (!(family_of(bare) in type) || family_of(bare) != current)
        fault("not under its TYPE")
}

bare ~ /_bucket$/ && type[current] == "histogram" {
    bound = name
    sub(/.*le="/, "", bound)
    sub(/".*/, "", bound)
    rest = name
    sub(/,?le="[^"]*"/, "", rest)
    if (rest != series)
        last_bucket = 0
    else if (bound != "+Inf" && bound + 0 <= last_bound + 0)
        fault("the bounds do not rise")
    if (value + 0 < last_bucket + 0)
        fault("a bucket is smaller than the one before")
    series = rest
    last_bound = bound
    last_bucket = value
}

bare ~ /_sum$/ && type[current] == "histogram" && value + 0 < 0 { fault("a sum below 0") }

bare ~ /_count$/ && type[current] == "histogram" {
    count_value = value
    end_histogram()
}

END {
    if (samples == 0)
        fault("no sample")
    exit faults > 0
}
