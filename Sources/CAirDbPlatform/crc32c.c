#include "CAirDbPlatform.h"

#include <stdatomic.h>
#include <string.h>

// Slicing by 8 (Kounavis and Berry, 2005). Reflected polynomial 0x82F63B78.
static uint32_t table[8][256];
static atomic_int table_ready;

static void make_table(void) {
  for (uint32_t i = 0; i < 256; i++) {
    uint32_t c = i;
    for (int k = 0; k < 8; k++) c = (c >> 1) ^ (0x82F63B78u & (0u - (c & 1)));
    table[0][i] = c;
  }
  for (uint32_t i = 0; i < 256; i++)
    for (int k = 1; k < 8; k++)
      table[k][i] = (table[k - 1][i] >> 8) ^ table[0][table[k - 1][i] & 0xFF];
}

uint32_t airdb_crc32c_portable(uint32_t crc, const void *bytes, size_t count) {
  // Every thread that finds the table unmade writes the same values into it, so that a table made
  // by a constructor is not needed; 2 is published last.
  if (atomic_load_explicit(&table_ready, memory_order_acquire) != 2) {
    int expected = 0;
    if (atomic_compare_exchange_strong(&table_ready, &expected, 1)) {
      make_table();
      atomic_store_explicit(&table_ready, 2, memory_order_release);
    } else {
      while (atomic_load_explicit(&table_ready, memory_order_acquire) != 2) {
      }
    }
  }
  const uint8_t *p = bytes;
  uint32_t c = ~crc;
  while (count >= 8) {
    uint32_t lo = c ^ ((uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
                       (uint32_t)p[3] << 24);
    c = table[7][lo & 0xFF] ^ table[6][(lo >> 8) & 0xFF] ^ table[5][(lo >> 16) & 0xFF] ^
        table[4][lo >> 24] ^ table[3][p[4]] ^ table[2][p[5]] ^ table[1][p[6]] ^ table[0][p[7]];
    p += 8;
    count -= 8;
  }
  while (count--) c = (c >> 8) ^ table[0][(c ^ *p++) & 0xFF];
  return ~c;
}

#if defined(__x86_64__)

#include <nmmintrin.h>

__attribute__((target("sse4.2"))) static uint32_t by_instruction(uint32_t crc, const uint8_t *p,
                                                                 size_t count) {
  uint64_t c = ~crc;
  while (count >= 8) {
    uint64_t v;
    memcpy(&v, p, 8);
    c = _mm_crc32_u64(c, v);
    p += 8;
    count -= 8;
  }
  while (count--) c = _mm_crc32_u8((uint32_t)c, *p++);
  return ~(uint32_t)c;
}

uint32_t airdb_crc32c(uint32_t crc, const void *bytes, size_t count) {
  if (__builtin_cpu_supports("sse4.2")) return by_instruction(crc, bytes, count);
  return airdb_crc32c_portable(crc, bytes, count);
}

#elif defined(__aarch64__)

#include <arm_acle.h>

#if defined(__ARM_FEATURE_CRC32)
static int has_instruction(void) { return 1; }
#elif defined(__APPLE__)
#include <sys/sysctl.h>

// Optional in ARMv8.0, and absent in the oldest devices that run the declared systems, so that the
// compiler does not assume it for iOS.
static int has_instruction(void) {
  static atomic_int known;  // 0: not yet, 1: no, 2: yes
  int answer = atomic_load_explicit(&known, memory_order_relaxed);
  if (answer == 0) {
    int value = 0;
    size_t size = sizeof value;
    int status = sysctlbyname("hw.optional.armv8_crc32", &value, &size, NULL, 0);
    answer = status == 0 && value != 0 ? 2 : 1;
    atomic_store_explicit(&known, answer, memory_order_relaxed);
  }
  return answer == 2;
}
#elif defined(__linux__)
#include <sys/auxv.h>

static int has_instruction(void) {
  const unsigned long crc32 = 1 << 7;  // HWCAP_CRC32
  return (getauxval(AT_HWCAP) & crc32) != 0;
}
#else
static int has_instruction(void) { return 0; }
#endif

__attribute__((target("crc"))) static uint32_t by_instruction(uint32_t crc, const uint8_t *p,
                                                              size_t count) {
  uint32_t c = ~crc;
  while (count >= 8) {
    uint64_t v;
    memcpy(&v, p, 8);
    c = __crc32cd(c, v);
    p += 8;
    count -= 8;
  }
  while (count--) c = __crc32cb(c, *p++);
  return ~c;
}

uint32_t airdb_crc32c(uint32_t crc, const void *bytes, size_t count) {
  if (has_instruction()) return by_instruction(crc, bytes, count);
  return airdb_crc32c_portable(crc, bytes, count);
}

#else

uint32_t airdb_crc32c(uint32_t crc, const void *bytes, size_t count) {
  return airdb_crc32c_portable(crc, bytes, count);
}

#endif
