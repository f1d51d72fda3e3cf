# Writes a file's bytes as a C array: cmake -D INPUT=… -D OUTPUT=… -D NAME=… -P embed.cmake. NAME is the
# array, ended by NUL, and NAME_bytes its length without that.
file(READ ${INPUT} bytes HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
string(REGEX REPLACE "(................................................................................)" "\\1\n    "
       bytes "${bytes}")
get_filename_component(source ${INPUT} NAME)
file(WRITE ${OUTPUT} "/* ${source}, made by embed.cmake. */
#include <stddef.h>

extern const unsigned char ${NAME}[];
extern const size_t ${NAME}_bytes;
const unsigned char ${NAME}[] = {
    ${bytes} 0};
const size_t ${NAME}_bytes = sizeof ${NAME} - 1;
")
