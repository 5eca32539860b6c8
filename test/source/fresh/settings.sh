# The settings of apt.
find /etc/apt -type f -exec sha256sum {} + | sort -k2
apt-config dump
apt-get indextargets --format '$(SITE) $(RELEASE) $(COMPONENT)' | sort -u
