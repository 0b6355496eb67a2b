// A header of the user's that has the path of one of ours.
#pragma once
#define USERS_OWN_DTYPE 1
