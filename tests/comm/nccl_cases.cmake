# Libraries that pretend to be NCCL: by the version that they tell.
tandem_fake_library(tandem_comm_tests NCCL_TOO_OLD ${CMAKE_CURRENT_LIST_DIR}/fake_nccl/version.cpp FAKE_NCCL_VERSION=21304)
tandem_fake_library(tandem_comm_tests NCCL_ANCIENT ${CMAKE_CURRENT_LIST_DIR}/fake_nccl/version.cpp FAKE_NCCL_VERSION=2804)
tandem_fake_library(tandem_comm_tests NCCL_BARE ${CMAKE_CURRENT_LIST_DIR}/fake_nccl/version.cpp FAKE_NCCL_VERSION=22809)
