/* The steps of a product's or a transposition's exchange that take as long as its body is large. They can be
 * another thread's than the connection's: what they touch nobody else does meanwhile, and what others may
 * read meanwhile, of an exchange that is abandoned, they leave to their caller. They ask nothing
 * of MHD, whose connection may be gone by then. */
#ifndef MM_SERVER_OPERATION_H
#define MM_SERVER_OPERATION_H

#include "server/exchange.h"

#ifdef __cplusplus
extern "C" {
#endif

/* From the complete body, whose Content-Type is given (NULL: absent), to a job with its memory, and the time
 * that this took; errors as the contract says. */
enum mm_status mm_operation_decode(struct mm_exchange *exchange, const char *content_type,
                                   uint64_t *decode_ns, struct mm_error *error);

/* Tells of the decoded job in the exchange's record, spans and deadline. With server->mutex held, or by the
 * connection's thread. */
void mm_operation_tell(struct mm_exchange *exchange, uint64_t decode_ns);

/* From the job's good end to the reply's body, and to all spans (MM_SPAN_COUNT). */
enum mm_status mm_operation_encode(struct mm_exchange *exchange, uint64_t *span_ns, struct mm_error *error);

#ifdef __cplusplus
}
#endif
#endif
