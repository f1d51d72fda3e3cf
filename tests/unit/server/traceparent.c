/* Tests which values of traceparent are valid. The examples are from the standard (W3C Trace Context). */
#include "server/http/traceparent.h"
#include "tests/unit/unit.h"

#define TRACE "0af7651916cd43dd8448eb211c80319c"
#define PARENT "b7ad6b7169203331"

static void values_are_checked(void **state) {
    static const char good[] =
        "00-" TRACE "-" PARENT "-01|00-" TRACE "-" PARENT "-00|00-" TRACE "-" PARENT "-ff|"
        "00-00000000000000000000000000000001-0000000000000001-00|"
        "01-" TRACE "-" PARENT "-01|cc-" TRACE "-" PARENT "-01-what-the-future-adds|"
        "fe-" TRACE "-" PARENT "-01-";
    static const char bad[] =
        "|00|00-" TRACE "-" PARENT "|00-" TRACE "-" PARENT "-1|00-" TRACE "-" PARENT "-01-|00-" TRACE
        "-" PARENT "-01-what-the-future-adds|00-" TRACE "-" PARENT "-010|01-" TRACE "-" PARENT
        "-010|01-" TRACE "-" PARENT "-01, 01-" TRACE "-" PARENT "-01|ff-" TRACE "-" PARENT
        "-01|00-00000000000000000000000000000000-" PARENT "-01|00-" TRACE
        "-0000000000000000-01|00-0AF7651916CD43DD8448EB211C80319C-" PARENT "-01|0g-" TRACE "-" PARENT
        "-01|00_" TRACE "-" PARENT "-01|00-" TRACE "_" PARENT "-01|00-" TRACE "-" PARENT "_01|00-" TRACE
        "-" PARENT "-0x| 00-" TRACE "-" PARENT "-01";
    char copy[MM_TRACEPARENT_CHARS + 1] = "untouched";
    EACH(value, bad) {
        if (mm_traceparent_read((struct mm_slice){value, strlen(value)}, copy))
            fail_msg("'%s' was accepted", value);
        assert_string_equal(copy, "untouched");
    }
    EACH(value, good) {
        if (!mm_traceparent_read((struct mm_slice){value, strlen(value)}, copy))
            fail_msg("'%s' was refused", value);
        assert_int_equal(strlen(copy), MM_TRACEPARENT_CHARS);
        assert_memory_equal(copy, value, MM_TRACEPARENT_CHARS);
    }
}

RUN_TESTS(values_are_checked)
