/* Names of the traffic figures, and the intensity. */
#include "gpu/lab/traffic/traffic.h"

#include "gpu/lab/access.h"

MM_DEFINE_NAMES(mm_traffic_name, mm_traffic_figure, MM_TRAFFIC_COUNT, MM_TRAFFIC_TABLE)
MM_DEFINE_TEXTS(mm_traffic_title, mm_traffic_figure, MM_TRAFFIC_COUNT, MM_TRAFFIC_TABLE, MM_TITLE_ROW)

struct mm_traffic mm_traffic_unknown(void) {
    struct mm_traffic traffic;
    for (unsigned figure = 0; figure < MM_TRAFFIC_COUNT; figure++)
        traffic.figures[figure] = MM_TRAFFIC_UNKNOWN;
    return traffic;
}

double mm_traffic_intensity(const struct mm_traffic *traffic, double flops) {
    const uint64_t loaded = traffic->figures[MM_GLOBAL_LOAD_SECTORS];
    const uint64_t stored = traffic->figures[MM_GLOBAL_STORE_SECTORS];
    if (loaded == MM_TRAFFIC_UNKNOWN || stored == MM_TRAFFIC_UNKNOWN || loaded + stored == 0)
        return 0.0;
    return flops / (MM_SECTOR_BYTES * ((double)loaded + (double)stored));
}
