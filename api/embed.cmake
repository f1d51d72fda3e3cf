# Makes files a part of the program. Included, it defines mm_embed; as a script, with TABLE, ROOT, FILES and OUTPUT, it
# writes the files that are listed in FILES as C arrays, ended by NUL, and a table of them. With GZIP it compresses INPUT.

# mm_embed(OUT TABLE ROOT FILE…): OUT gets the C file for a target: an array for each FILE, an absolute path, and `struct
# mm_embedded_files TABLE` with a row for each. A row's path begins at the folder ROOT; if that is empty, it is the name.
function(mm_embed out table root)
    set(made ${CMAKE_CURRENT_BINARY_DIR}/${table}.c)
    set(script ${PROJECT_SOURCE_DIR}/api/embed.cmake)
    list(JOIN ARGN "\n" files)
    file(CONFIGURE OUTPUT ${table}.txt CONTENT "${files}" @ONLY) # for a command line they are too many
    add_custom_command(OUTPUT ${made}
        COMMAND ${CMAKE_COMMAND} -D TABLE=${table} -D ROOT=${root} -D FILES=${CMAKE_CURRENT_BINARY_DIR}/${table}.txt
                -D OUTPUT=${made} -P ${script}
        DEPENDS ${ARGN} ${CMAKE_CURRENT_BINARY_DIR}/${table}.txt ${script} VERBATIM)
    set(${out} ${made} PARENT_SCOPE)
endfunction()

# mm_embed_gzip(OUT FILE): FILE compressed, in the build folder, under its name with .gz behind it.
function(mm_embed_gzip out file)
    get_filename_component(name ${file} NAME)
    set(made ${CMAKE_CURRENT_BINARY_DIR}/${name}.gz)
    add_custom_command(OUTPUT ${made}
        COMMAND ${CMAKE_COMMAND} -D INPUT=${file} -D GZIP=${made} -P ${PROJECT_SOURCE_DIR}/api/embed.cmake
        DEPENDS ${file} ${PROJECT_SOURCE_DIR}/api/embed.cmake VERBATIM)
    set(${out} ${made} PARENT_SCOPE)
endfunction()

if(NOT CMAKE_SCRIPT_MODE_FILE)
    return()
endif()
if(GZIP)
    set(ENV{SOURCE_DATE_EPOCH} 0) # else gzip's head has the time of the build, so each build would have other ETags
    file(ARCHIVE_CREATE OUTPUT ${GZIP} PATHS ${INPUT} FORMAT raw COMPRESSION GZip COMPRESSION_LEVEL 9)
    return()
endif()
file(STRINGS ${FILES} files)
set(arrays "")
set(rows "")
foreach(file ${files})
    if(ROOT)
        file(RELATIVE_PATH path ${ROOT} ${file})
    else()
        get_filename_component(path ${file} NAME)
    endif()
    string(MAKE_C_IDENTIFIER ${path} name)
    file(READ ${file} bytes HEX)
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
    string(REGEX REPLACE "(................................................................................)" "\\1\n    "
           bytes "${bytes}")
    file(SHA256 ${file} hash)
    string(SUBSTRING ${hash} 0 32 hash)
    string(APPEND arrays "static const unsigned char ${name}[] = {\n    ${bytes} 0};\n")
    string(APPEND rows "    {\"${path}\", ${name}, sizeof ${name} - 1, \"\\\"${hash}\\\"\"},\n")
endforeach()
file(WRITE ${OUTPUT} "/* A table of files, made by embed.cmake. */
#include \"api/embedded.h\"

${arrays}
static const struct mm_embedded_file rows[] = {
${rows}};
extern const struct mm_embedded_files ${TABLE};
const struct mm_embedded_files ${TABLE} = {rows, sizeof rows / sizeof rows[0]};
")
