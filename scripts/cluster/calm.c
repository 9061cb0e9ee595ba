// Preloaded into the ranks of scripts/cluster/cluster.py, so that those who wait sleep.
//
// Horovod's synchronize() spins on sched_yield, and polling loops in Python spin on sleep(0). With
// more ranks than cores the spinning takes the processor from those who work, and at real-time
// priority it never gives it back. Sleeping is what a rank on a machine of its own would see.

#define _GNU_SOURCE
#include <errno.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static const struct timespec kPause = {0, 200000};

__attribute__((constructor)) static void sleep_precisely(void) { prctl(PR_SET_TIMERSLACK, 1000UL); }

static int pause_shortly(void) {
  syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &kPause, 0);
  return 0;
}

static int is_over(clockid_t clock, int flags, const struct timespec* until) {
  struct timespec now = {0, 0};
  if (flags & TIMER_ABSTIME) clock_gettime(clock, &now);
  if (until->tv_sec != now.tv_sec) return until->tv_sec < now.tv_sec;
  return until->tv_nsec <= now.tv_nsec;
}

int sched_yield(void) { return pause_shortly(); }

// What Python's time.sleep() calls.
int clock_nanosleep(clockid_t clock, int flags, const struct timespec* until,
                    struct timespec* left) {
  if (is_over(clock, flags, until)) return pause_shortly();
  return syscall(SYS_clock_nanosleep, clock, flags, until, left) == 0 ? 0 : errno;
}
