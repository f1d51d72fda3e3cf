/* A system that has no more threads, for tests of what is done then. Linked with --wrap=pthread_create. */
#pragma once

/* How many can be started until one cannot; negative, as at first: all can. */
extern int threads_left;
