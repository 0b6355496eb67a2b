// Carries the precompiled headers that all rooms share (see cmake/rooms.cmake); holds no code.
