# SPDX-License-Identifier: MIT
errand_test(workers_async async_test.c)
errand_test(workers_async_end async_end_test.c)
errand_test(workers_custom custom_test.c)
errand_test(workers_manual manual_test.c LABELS smoke)
errand_test(workers_manual_async manual_async_test.c LABELS smoke)
