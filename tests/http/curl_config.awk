# A request's first line and headers as a configuration file of curl: one option a line. The headers that
# curl adds by itself go, unless the request has them. It is given `url` and `scratch`.
function quoted(text) {
    gsub(/["\\]/, "\\\\&", text)
    return "\"" text "\""
}

NR == 1 {
    print "url = " quoted(url)
    print "request-target = " quoted($2)
    print ($1 == "HEAD") ? "head" : "request = " quoted($1)
    print ($3 == "HTTP/1.0") ? "http1.0" : "http1.1"
    print "max-time = 60"
    print "dump-header = " quoted(scratch "/head")
    print "output = " quoted(scratch "/got")
    added["accept"] = added["content-type"] = added["expect"] = added["user-agent"] = 1
    next
}

{
    print "header = " quoted($0)
    delete added[tolower(substr($0, 1, index($0, ":") - 1))]
}

END {
    for (name in added)
        print "header = " quoted(name ":")
}
