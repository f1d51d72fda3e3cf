# Writes the man page at installation: OUTPUT is INPUT with the options that `MATMULD --help` prints.
execute_process(COMMAND ${MATMULD} --help OUTPUT_VARIABLE options COMMAND_ERROR_IS_FATAL ANY)
string(TIMESTAMP date "%Y-%m-%d" UTC)
string(FIND "${options}" "\n  " first)
string(SUBSTRING "${options}" ${first} -1 options)
string(REGEX REPLACE "\n    +" " " options "${options}") # joins the lines of a description
string(REPLACE "-" "\\-" options "${options}")
string(REGEX REPLACE "\n  ([^ ]+( [^ ]+)?) +([^\n]+)" "\n.TP\n.B \\1\n\\3" options "${options}")
string(STRIP "${options}" options)
configure_file(${INPUT} ${OUTPUT} @ONLY)
