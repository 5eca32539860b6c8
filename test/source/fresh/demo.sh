# Prints how many packages scripts/deps names, what scripts/demo prints, and how many megabytes the latter takes.
# What `apt-get install --simulate` cannot find it names, and fails.
megabytes() { sudo du -smx --exclude=/home --exclude=/root --exclude=/var/lib/apt/lists / | cut -f1; }
sudo apt-get -qq update
names=$(./scripts/deps --names all)
apt-get -qq install --simulate --no-install-recommends $names >/dev/null
echo "$names" | wc -w
size=$(megabytes)
./scripts/demo
echo "It takes $(($(megabytes) - size)) MB."
